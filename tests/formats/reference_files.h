// Samples with their expected outcomes, and independent readers. The tree's own are in
// tests/golden; the reference pack, which has recordings of other programs, is beside the
// checkout where there is one. Tests go through both; tests of what only the pack has skip without
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/golden/golden_folder.h"

namespace collect::reference {

// The pack. Empty when the environment does not name an existing folder.
inline std::filesystem::path reference_folder() {
  const char* folder = std::getenv("COLLECT_REFERENCE");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return {};
  return std::filesystem::canonical(folder);
}

// For GTEST_SKIP() and part_left_out().
inline constexpr const char* kNoPack = "only the reference pack has it: COLLECT_REFERENCE";

// What is at `path` in tests/golden, and in the pack: both have their samples at the same places.
inline std::vector<std::filesystem::path> sample_folders(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> folders = {golden_folder() / path};
  const std::filesystem::path pack = reference_folder();
  if (!pack.empty()) folders.push_back(pack / path);
  return folders;
}

// The files of a folder with this ending, in order.
inline std::vector<std::filesystem::path> files_with(const std::filesystem::path& folder,
                                                     std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::filesystem::path> files_with(
    const std::vector<std::filesystem::path>& folders, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : folders) {
    for (auto& file : files_with(folder, ending)) files.push_back(std::move(file));
  }
  return files;
}

// The tree's own program of that name, and the pack's where it is there.
inline std::vector<std::filesystem::path> independent_programs(const char* own,
                                                               const char* of_the_pack) {
  std::vector<std::filesystem::path> programs = {golden_folder() / own};
  const std::filesystem::path pack = reference_folder();
  if (!pack.empty()) programs.push_back(pack / "tools" / of_the_pack);
  return programs;
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
