// Writes valid dial9 streams where the fuzz targets look for seeds: dial9_seeds CORPUS_FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/formats/dial9/random_stream.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: dial9_seeds CORPUS_FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path corpus = std::filesystem::path(argv[1]) / "dial9_decode_fuzz";
  std::filesystem::create_directories(corpus);
  bool good = true;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto made = collect::dial9::testing::random_stream(seed, 1 + seed % 3, 12);
    std::ofstream out(corpus / ("random_" + std::to_string(seed)), std::ios::binary);
    out << static_cast<char>(seed * 5) << static_cast<char>(seed);  // how the target cuts it
    out.write(reinterpret_cast<const char*>(made.bytes.data()),
              static_cast<std::streamsize>(made.bytes.size()));
    good = out.good() && good;
  }
  return good ? 0 : 1;
}
