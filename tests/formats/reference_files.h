// The reference pack for tests: samples, their expected outcomes, and the independent checkers. It
// lies beside the checkout, not in it; tests skip without it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace collect::reference {

// Empty when the environment does not name an existing folder.
inline std::filesystem::path reference_folder() {
  const char* folder = std::getenv("COLLECT_REFERENCE");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return {};
  return std::filesystem::canonical(folder);
}

inline std::vector<uint8_t> file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace collect::reference
