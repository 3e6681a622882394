// Writes frames, and the encoded bytes of pages, where the fuzz targets look for seeds:
// wire_seeds CORPUS_FOLDER.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"
#include "tests/formats/atf/built_thread.h"

namespace {

using collect::Bytes;
using collect::Codec;
using collect::Lane;
namespace atf = collect::atf;
namespace wire = collect::wire;
namespace fs = std::filesystem;
using Octets = std::vector<uint8_t>;

uint32_t crc(Bytes bytes, uint32_t previous) {
  return collect::crc32c(bytes, previous);
}

bool write(const fs::path& path, Bytes bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

Octets page_frame(Lane lane, Codec codec, uint32_t count, uint32_t raw_bytes, Bytes sent) {
  collect::PageHeader page;
  page.stream_id = 1;
  page.lane = lane;
  page.codec = codec;
  page.record_count = count;
  page.raw_bytes = raw_bytes;
  page.bytes_crc32c = collect::crc32c(sent);
  Octets frame(wire::kPagePrefixBytes);
  wire::encode_page_prefix(page, static_cast<uint32_t>(sent.size()), crc, frame.data());
  frame.insert(frame.end(), sent.begin(), sent.end());
  return frame;
}

// As page_codec_fuzz takes it: lane, raw bytes, record count, what was sent.
Octets codec_input(Lane lane, uint32_t count, uint32_t raw_bytes, Bytes sent) {
  Octets input(9);
  input[0] = lane == Lane::kIndex ? 0 : 1;
  collect::store_le<uint32_t>(input.data() + 1, raw_bytes);
  collect::store_le<uint32_t>(input.data() + 5, count);
  input.insert(input.end(), sent.begin(), sent.end());
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: wire_seeds CORPUS_FOLDER\n", stderr);
    return 2;
  }
  const fs::path corpus = argv[1];
  static wire::ColumnEncoder encoder;
  Octets stream(sizeof(wire::FrameHeader));
  encode_control_header(wire::FrameType::kHeartbeat, {}, crc, stream.data());
  bool good = write(corpus / "wire_frame_fuzz" / "heartbeat", stream);
  int number = 0;
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    for (const uint32_t count : {1u, 12u, 100u}) {
      atf::testing::ThreadPlan plan;
      plan.version = version;
      plan.events = count;
      plan.detail_every = 1;
      plan.finalize = false;
      const auto made = build_thread(plan);
      for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
        const Octets& file = lane == Lane::kIndex ? made.index : made.detail;
        const Bytes records = Bytes(file).subspan(atf::kHeaderBytes);
        const auto raw_bytes = static_cast<uint32_t>(records.size());
        const std::string name = std::to_string(number++);
        const Octets raw = page_frame(lane, Codec::kRaw, count, raw_bytes, records);
        good = write(corpus / "wire_frame_fuzz" / ("raw_" + name), raw) && good;
        Octets sent(records.size());
        sent.resize(encoder.encode(lane, count, records, sent));
        if (sent.empty()) continue;
        const Octets encoded = page_frame(lane, Codec::kColumns, count, raw_bytes, sent);
        good = write(corpus / "wire_frame_fuzz" / ("encoded_" + name), encoded) && good;
        good =
            write(corpus / "page_codec_fuzz" / name, codec_input(lane, count, raw_bytes, sent)) &&
            good;
      }
    }
  }
  return good ? 0 : 1;
}
