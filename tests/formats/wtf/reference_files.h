// The reference pack for tests: samples, their expected outcomes, the independent readers, and the
// published viewer's library where node and the npm package are there. It lies beside the checkout,
// not in it; tests skip without it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/formats/reference_files.h"

namespace collect::wtf::testing {

using reference::file_bytes;
using reference::reference_folder;
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

struct Ran {
  int status = -1;
  std::string out;
};

// Standard output and exit code of a shell command.
inline Ran run(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 65536> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    ran.out.append(buffer.data(), got);
  }
  const int raw = pclose(pipe);
  ran.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  return ran;
}

inline bool has_python() {
  return run("python3 --version 2>/dev/null").status == 0;
}

}  // namespace collect::wtf::testing
