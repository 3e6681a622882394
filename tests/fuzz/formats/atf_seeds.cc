// Writes valid ATF files where the fuzz targets look for seeds: atf_seeds CORPUS_FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/formats/atf/built_thread.h"
#include "tests/fuzz/formats/atf_session_input.h"

namespace {

using collect::Bytes;
namespace atf = collect::atf;
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
    std::fputs("usage: atf_seeds CORPUS_FOLDER\n", stderr);
    return 2;
  }
  const fs::path corpus = argv[1];
  bool good = true;
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    for (const bool finalize : {true, false}) {
      atf::testing::ThreadPlan plan;
      plan.version = version;
      plan.finalize = finalize;
      plan.detail_every = 3;
      const auto made = build_thread(plan);
      const std::string name =
          std::to_string(static_cast<int>(version)) + (finalize ? "_sealed" : "_open");
      good = write(corpus / "atf_index_fuzz" / name, made.index) && good;
      good = write(corpus / "atf_detail_fuzz" / name, made.detail) && good;
      std::vector<uint8_t> session;
      atf::fuzz::append_thread(session, made.index, made.detail);
      plan.detail_every = 0;
      plan.start_ns = 1005;
      atf::fuzz::append_thread(session, build_thread(plan).index, {});
      good = write(corpus / "atf_session_fuzz" / name, session) && good;
    }
  }
  return good ? 0 : 1;
}
