// Writes valid WTF-trace files of both forms where the fuzz targets look for seeds:
// wtf_seeds CORPUS_FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/wtf/json/json.h"
#include "tests/formats/wtf/built_file.h"

namespace {

using collect::Bytes;
namespace wtf = collect::wtf;
namespace fs = std::filesystem;

bool write(const fs::path& path, Bytes bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: wtf_seeds CORPUS_FOLDER\n", stderr);
    return 2;
  }
  const fs::path corpus = argv[1];
  bool good = true;
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const auto binary =
        seed == 1 ? wtf::testing::build_file(300) : wtf::testing::random_file(seed, 30, 700).bytes;
    good = write(corpus / "wtf_binary_fuzz" / ("seed" + std::to_string(seed)), binary) && good;
    for (const auto mode : {wtf::JsonMode::kComplete, wtf::JsonMode::kPartial}) {
      for (const auto events : {wtf::JsonEvents::kEvents, wtf::JsonEvents::kBase64}) {
        collect::VectorSink text;
        wtf::Findings findings;
        good = wtf::binary_to_json(binary, {mode, events}, text, findings).ok() && good;
        const std::string name = std::to_string(seed) + std::to_string(static_cast<int>(mode)) +
                                 std::to_string(static_cast<int>(events));
        good = write(corpus / "wtf_json_fuzz" / ("seed" + name), text.bytes()) && good;
      }
    }
  }
  return good ? 0 : 1;
}
