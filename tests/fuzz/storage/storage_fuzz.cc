// What storage reads back after a crash: records of both lanes and versions, and the manifest. The
// first byte chooses.
#include <cstdlib>
#include <string_view>

#include "formats/core/bytes.h"
#include "storage/manifest/manifest.h"
#include "storage/thread/record_scan.h"

using namespace collect;
using namespace collect::storage;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes input(data + 1, size - 1);
  if (data[0] & 1) {
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    const auto manifest = manifest_from_json(text);
    if (!manifest.ok()) return 0;
    // What was read once is written and read again without a difference.
    const std::string json = manifest_to_json(manifest.value());
    const auto again = manifest_from_json(json);
    if (!again.ok() || manifest_to_json(again.value()) != json) std::abort();
    return 0;
  }
  const RecordFormat format{data[0] & 2 ? atf::Version::kV1 : atf::Version::kV2, 0x01010101};
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    LaneSummary whole;
    scan_lane(lane, format, input, UINT64_MAX, whole);
    if (whole.bytes > input.size()) std::abort();
    // The part that holds holds by itself, and in two pieces.
    LaneSummary pieces;
    scan_lane(lane, format, input, whole.records / 2, pieces);
    const size_t first = static_cast<size_t>(pieces.bytes);
    scan_lane(lane, format, input.subspan(first), UINT64_MAX, pieces);
    if (pieces.records != whole.records || pieces.link_hash != whole.link_hash) std::abort();
  }
  return 0;
}
