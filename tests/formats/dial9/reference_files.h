// The reference pack for tests: samples, their expected outcomes, and the independent decoder. It
// lies beside the checkout, not in it; tests skip without it.
#pragma once

#include <sys/wait.h>
#include <zlib.h>

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

namespace collect::dial9::testing {

using reference::file_bytes;
using reference::reference_folder;
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

// Standard output of a command; its exit code in `status`.
inline std::string run(const std::string& command, int& status) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  std::array<char, 65536> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    out.append(buffer.data(), got);
  }
  const int raw = pclose(pipe);
  status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  return out;
}

inline bool has_python() {
  int status = 0;
  run("python3 --version 2>/dev/null", status);
  return status == 0;
}

}  // namespace collect::dial9::testing
