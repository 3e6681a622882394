// Any bytes as index.lod: as they are, and with the checksums of header, nodes and summary made
// right, so that what is behind them is reached.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "formats/calls/lod/call_bars.h"
#include "formats/calls/lod/lod_reader.h"
#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"

namespace {

using namespace collect;
using namespace collect::calls;

void use(Bytes file) {
  const auto lod = LodReader::open(file);
  if (!lod.ok()) return;
  (void)lod->check();
  (void)lod->summary();
  for (const uint64_t ns : {lod->first_ns(), (lod->first_ns() + lod->last_ns()) / 2}) {
    const auto leaf = lod->leaf_before(ns);
    if (!leaf.ok() || !*leaf) continue;
    const auto open = lod->open_at(**leaf);
    if (open.ok() && open->size() > OpenCalls::kMaxDepth) std::abort();
  }
  if (lod->first_ns() > lod->last_ns()) return;
  const Window window{lod->first_ns(), lod->last_ns()};
  CallBars bars(window, 100);
  if (!bars.add(*lod).ok()) return;
  for (const CallBar& bar : bars.take()) {
    if (bar.depth >= CallBars::kRows || bar.first_ns < window.first_ns) std::abort();
  }
  (void)events_in(*lod, window);
}

// Checksums of what the header says that there is.
void mend(std::vector<uint8_t>& file) {
  if (file.size() < kLodHeaderBytes) return;
  std::copy(std::begin(kLodMagic), std::end(kLodMagic), file.begin());
  store_le(file.data() + 4, kLodVersion);
  store_le(file.data() + 72, uint64_t{file.size()});
  const uint64_t nodes = load_le<uint64_t>(file.data() + 56);
  const uint64_t summary = load_le<uint64_t>(file.data() + 64);
  if (nodes <= summary && summary <= file.size()) {
    for (uint64_t at = nodes; at + kLodNodeBytes <= summary; at += kLodNodeBytes) {
      auto node = load_le<LodNode>(file.data() + at);
      const uint64_t bytes = uint64_t{node.cells} * kLodCellBytes + uint64_t{node.opened} * 2;
      if (node.data_offset <= file.size() && bytes <= file.size() - node.data_offset) {
        node.data_checksum = crc32c(Bytes(file).subspan(node.data_offset, bytes));
      }
      store_le(file.data() + at, node);
      store_le(file.data() + at + offsetof(LodNode, checksum),
               crc32c(Bytes(file).subspan(at, offsetof(LodNode, checksum))));
    }
    store_le(file.data() + 80, crc32c(Bytes(file).subspan(summary)));
  }
  store_le(file.data() + 124, crc32c(Bytes(file).first(124)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  use(file);
  mend(file);
  use(file);
  const auto summary = decode_lod_summary(Bytes(data, size));
  if (summary.ok()) {
    // What is taken says the same again.
    const auto again = decode_lod_summary(encode_lod_summary(**summary));
    if (!again.ok() || (*again)->paths.size() != (*summary)->paths.size()) std::abort();
  }
  return 0;
}
