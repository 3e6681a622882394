// Any bytes as a segment, with and without a checksum that holds: actions within their limits or an
// error, and what was read is written and read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "daemon/upload/segment.h"
#include "formats/core/crc32.h"

namespace {

using namespace collect;

void read(Bytes object) {
  const auto actions = upload::parse_segment(object);
  if (!actions.ok()) return;
  upload::SegmentBuilder builder;
  for (const upload::SegmentAction& action : *actions) {
    if (action.path.size() > upload::kMaxSegmentPathBytes) std::abort();
    builder.add(action);
  }
  const Bytes again = builder.finish();
  if (again.size() != object.size() ||
      std::memcmp(again.data(), object.data(), again.size()) != 0) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({data, size});
  std::vector<uint8_t> right(data, data + size);
  right.resize(size + 4);
  store_le(right.data() + size, crc32c(Bytes(right).first(size)));
  read(right);
  return 0;
}
