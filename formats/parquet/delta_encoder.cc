#include "formats/parquet/delta_encoder.h"

#include <algorithm>
#include <array>
#include <bit>

#include "formats/parquet/bit_packing.h"
#include "formats/parquet/varint.h"

namespace collect::parquet {

namespace {

// `deltas` are at most a block's; they are made relative to the smallest. `Unsigned` is the
// unsigned type of the values' width, in which all differences wrap.
template <class Signed, class Unsigned>
void append_block(std::span<Unsigned> deltas, std::vector<uint8_t>& out) {
  Signed smallest = static_cast<Signed>(deltas[0]);
  for (const Unsigned delta : deltas) smallest = std::min(smallest, static_cast<Signed>(delta));
  append_zigzag(smallest, out);
  for (Unsigned& delta : deltas) delta -= static_cast<Unsigned>(smallest);

  const size_t widths_at = out.size();
  out.resize(widths_at + kDeltaMiniblocks);  // miniblocks without values have width 0 and no bytes
  size_t miniblock = 0;
  for (size_t at = 0; at < deltas.size(); at += kDeltaMiniblockValues, ++miniblock) {
    const std::span<const Unsigned> part =
        deltas.subspan(at, std::min(kDeltaMiniblockValues, deltas.size() - at));
    Unsigned used = 0;
    for (const Unsigned delta : part) used |= delta;
    const auto width = static_cast<uint32_t>(std::bit_width(used));
    out[widths_at + miniblock] = static_cast<uint8_t>(width);
    append_bit_packed(part, kDeltaMiniblockValues, width, out);
  }
}

template <class Signed, class Unsigned>
void append_all(std::span<const uint64_t> values, std::vector<uint8_t>& out) {
  append_varint(kDeltaBlockValues, out);
  append_varint(kDeltaMiniblocks, out);
  append_varint(values.size(), out);
  append_zigzag(values.empty() ? 0 : static_cast<Signed>(values[0]), out);
  std::array<Unsigned, kDeltaBlockValues> deltas;
  for (size_t at = 1; at < values.size(); at += kDeltaBlockValues) {
    const size_t count = std::min(kDeltaBlockValues, values.size() - at);
    for (size_t i = 0; i < count; ++i) {
      deltas[i] = static_cast<Unsigned>(values[at + i] - values[at + i - 1]);
    }
    append_block<Signed>(std::span(deltas).first(count), out);
  }
}

}  // namespace

void append_delta_binary_packed(std::span<const uint64_t> values, PhysicalType type,
                                std::vector<uint8_t>& out) {
  if (type == PhysicalType::kInt32) {
    append_all<int32_t, uint32_t>(values, out);
  } else {
    append_all<int64_t, uint64_t>(values, out);
  }
}

}  // namespace collect::parquet
