#include "formats/core/encoding/inflate.h"

#include <fmt/core.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>

namespace collect {
namespace {

constexpr size_t kMinStepBytes = size_t{4} << 10;
constexpr size_t kMaxStepBytes = size_t{256} << 10;
constexpr size_t kMaxPackedBytes = size_t{1} << 30;  // ISA-L counts in 32 bits

}  // namespace

Result<std::vector<uint8_t>> inflate_piece(Bytes packed, size_t max_bytes) {
  if (packed.size() > kMaxPackedBytes) return Error{Code::kLimit, "more than is unpacked at once"};
  const auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  const bool is_gzip = packed.size() >= 2 && packed[0] == 0x1F && packed[1] == 0x8B;
  state->crc_flag = is_gzip ? ISAL_GZIP : ISAL_ZLIB;
  state->next_in = const_cast<uint8_t*>(packed.data());  // it is only read
  state->avail_in = static_cast<uint32_t>(packed.size());
  const size_t step = std::clamp(4 * packed.size(), kMinStepBytes, kMaxStepBytes);
  std::vector<uint8_t> out;
  while (state->block_state != ISAL_BLOCK_FINISH) {
    const size_t at = out.size();
    if (at > max_bytes) return Error{Code::kLimit, fmt::format("more than {} bytes", max_bytes)};
    out.resize(at + std::min(step, max_bytes - at + 1));
    state->next_out = out.data() + at;
    state->avail_out = static_cast<uint32_t>(out.size() - at);
    const int status = isal_inflate(state.get());
    const size_t made = out.size() - at - state->avail_out;
    out.resize(at + made);
    const bool stops = status == ISAL_DECOMP_OK && made == 0 && state->avail_in == 0 &&
                       state->block_state != ISAL_BLOCK_FINISH;
    if ((status != ISAL_DECOMP_OK && status != ISAL_OUT_OVERFLOW) || stops) {
      return Error{Code::kDamaged, stops ? "it is cut off" : "it does not unpack"};
    }
  }
  if (out.size() > max_bytes)
    return Error{Code::kLimit, fmt::format("more than {} bytes", max_bytes)};
  return out;
}

}  // namespace collect
