#include "formats/parquet/rle_encoder.h"

#include "formats/parquet/bit_packing.h"
#include "formats/parquet/varint.h"

namespace collect::parquet {

namespace {

constexpr size_t kGroupValues = 8;  // bit-packed runs consist of these

template <class T>
size_t run_length(std::span<const T> values, size_t at) {
  size_t end = at + 1;
  while (end < values.size() && values[end] == values[at]) ++end;
  return end - at;
}

template <class T>
void append_bit_packed_run(std::span<const T> values, uint32_t width, std::vector<uint8_t>& out) {
  if (values.empty()) return;
  const size_t groups = (values.size() + kGroupValues - 1) / kGroupValues;
  append_varint(groups << 1 | 1, out);
  append_bit_packed(values, groups * kGroupValues, width, out);
}

template <class T>
void append_rle_run(T value, size_t count, uint32_t width, std::vector<uint8_t>& out) {
  append_varint(count << 1, out);
  for (uint32_t bit = 0; bit < width; bit += 8) {
    out.push_back(static_cast<uint8_t>(uint64_t{value} >> bit));
  }
}

// A run of equal values becomes an RLE run where it covers a whole group; what is between goes
// into bit-packed runs of whole groups.
template <class T>
void append_hybrid(std::span<const T> values, uint32_t width, std::vector<uint8_t>& out) {
  size_t packed_from = 0;
  size_t at = 0;
  while (at < values.size()) {
    const size_t run = run_length(values, at);
    if (run < kGroupValues) {
      at += kGroupValues;
      continue;
    }
    append_bit_packed_run(values.subspan(packed_from, at - packed_from), width, out);
    append_rle_run(values[at], run, width, out);
    at += run;
    packed_from = at;
  }
  if (packed_from < values.size()) append_bit_packed_run(values.subspan(packed_from), width, out);
}

}  // namespace

void append_rle_hybrid(std::span<const uint32_t> values, uint32_t width,
                       std::vector<uint8_t>& out) {
  append_hybrid(values, width, out);
}

void append_rle_hybrid(std::span<const uint8_t> values, uint32_t width, std::vector<uint8_t>& out) {
  append_hybrid(values, width, out);
}

}  // namespace collect::parquet
