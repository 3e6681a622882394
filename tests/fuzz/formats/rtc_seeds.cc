// Writes small containers where the fuzz target looks for seeds: rtc_seeds CORPUS_FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/formats/rtc/random_container.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: rtc_seeds CORPUS_FOLDER\n", stderr);
    return 2;
  }
  namespace rtc = collect::rtc;
  const std::filesystem::path corpus = std::filesystem::path(argv[1]) / "rtc_reader_fuzz";
  std::filesystem::create_directories(corpus);
  bool good = true;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    rtc::testing::Plan plan;
    plan.seed = seed + 1;
    plan.operations = 10 + 10 * (seed % 4);
    plan.max_object_bytes = 200;
    plan.finish = seed % 3 != 0;
    plan.options.geometry = {uint64_t{2048} << (seed % 3), 2048};
    if (seed % 2 != 0) plan.options.special = rtc::SpecialFrames::kPrefixed;
    const auto made = rtc::testing::RandomContainer(plan).make();
    std::ofstream out(corpus / ("random_" + std::to_string(seed)), std::ios::binary);
    out.write(reinterpret_cast<const char*>(made.file.data()),
              static_cast<std::streamsize>(made.file.size()));
    good = out.good() && good;
  }
  return good ? 0 : 1;
}
