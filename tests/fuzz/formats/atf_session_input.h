// How one fuzz input holds the files of several threads: per thread u32 index bytes, u32 detail
// bytes (0: no file), then both. Lengths beyond the input are cut to what is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/atf/session_reader.h"
#include "formats/core/bytes.h"

namespace collect::atf::fuzz {

inline constexpr size_t kMaxThreads = 16;

inline void append_thread(std::vector<uint8_t>& input, Bytes index, Bytes detail) {
  uint8_t lengths[8];
  store_le<uint32_t>(lengths, static_cast<uint32_t>(index.size()));
  store_le<uint32_t>(lengths + 4, static_cast<uint32_t>(detail.size()));
  input.insert(input.end(), lengths, lengths + 8);
  input.insert(input.end(), index.begin(), index.end());
  input.insert(input.end(), detail.begin(), detail.end());
}

inline std::vector<ThreadFiles> threads_of(Bytes input) {
  std::vector<ThreadFiles> threads;
  ByteReader in(input);
  while (in.remaining() >= 8 && threads.size() < kMaxThreads) {
    const size_t index_bytes = in.u32();
    const size_t detail_bytes = in.u32();
    ThreadFiles thread;
    thread.n = static_cast<uint32_t>(threads.size());
    thread.index = in.bytes(std::min(index_bytes, in.remaining()));
    if (detail_bytes != 0) thread.detail = in.bytes(std::min(detail_bytes, in.remaining()));
    threads.push_back(thread);
  }
  return threads;
}

}  // namespace collect::atf::fuzz
