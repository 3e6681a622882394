// Samples, their expected outcomes, and independent readers: the tree's own, and the reference
// pack's where it is there. With the pack, node and the npm package there is the published viewer's
// library too.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"

namespace collect::wtf::testing {

using reference::file_bytes;
using reference::files_with;
using reference::golden_folder;
using reference::has_python;
using reference::independent_programs;
using reference::kNoPack;
using reference::PythonTool;
using reference::Ran;
using reference::reference_folder;
using reference::run;
using reference::sample_folders;
using reference::write_file;

// A folder of this process, gone with the object.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("wtf_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace collect::wtf::testing
