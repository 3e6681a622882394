// Any bytes: the decoder takes frames, asks for more, or refuses, and never looks past the end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/core/crc32.h"
#include "proto/wire/frame_decoder.h"

namespace {

uint32_t crc(collect::Bytes bytes, uint32_t previous) {
  return collect::crc32c(bytes, previous);
}

// Checksums would turn nearly every input away: in this mode each one is taken to be right.
uint32_t no_crc(collect::Bytes, uint32_t) {
  return 0;
}

void run(collect::Bytes input, collect::wire::Crc32c checksum) {
  while (!input.empty()) {
    collect::wire::Frame frame;
    const auto decoded = collect::wire::decode_frame(input, checksum, frame);
    if (decoded.status == collect::wire::DecodeStatus::kBad) return;
    if (decoded.status == collect::wire::DecodeStatus::kNeedMore) {
      if (decoded.need_bytes <= input.size() ||
          decoded.need_bytes > collect::wire::kMaxFrameBytes) {
        std::abort();
      }
      return;
    }
    uint32_t sum = 0;
    for (const uint8_t byte : frame.body) sum += byte;
    for (const uint8_t byte : frame.page_bytes) sum += byte;
    if (sum == 0xFFFFFFFF || frame.frame_bytes > input.size() || frame.frame_bytes == 0)
      std::abort();
    input = input.subspan(frame.frame_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run(collect::Bytes(data, size), crc);
  run(collect::Bytes(data, size), no_crc);
  return 0;
}
