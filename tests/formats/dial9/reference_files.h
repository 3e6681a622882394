// Samples, their expected outcomes, and independent decoders: the tree's own, and the reference
// pack's where it is there.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"

namespace collect::dial9::testing {

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

inline std::string file_text(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = file_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// A file as it is, or what a .gz holds.
inline std::vector<uint8_t> unpacked_bytes(const std::filesystem::path& path) {
  std::vector<uint8_t> all;
  const gzFile in = gzopen(path.c_str(), "rb");  // reads plain files too
  if (in == nullptr) return all;
  std::vector<uint8_t> piece(size_t{1} << 16);
  for (int got; (got = gzread(in, piece.data(), static_cast<unsigned>(piece.size()))) > 0;) {
    all.insert(all.end(), piece.begin(), piece.begin() + got);
  }
  gzclose(in);
  return all;
}

}  // namespace collect::dial9::testing
