// Any bytes as Meta: what is read can be written, and reads as the same.
#include <cstdint>
#include <string>

#include "formats/core/result.h"
#include "formats/rtc/meta/meta.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const auto meta = rtc::parse_meta(Bytes(data, size));
  if (!meta) return 0;
  for (const rtc::StreamInfo& stream : meta.value().streams) {
    const auto json = rtc::stream_json(stream);
    if (!json) continue;  // an extra key of the format's own name, as "type" beside "format"
    const std::string array = "[" + json.value() + ",1]";
    const auto again =
        rtc::parse_meta(Bytes(reinterpret_cast<const uint8_t*>(array.data()), array.size()));
    COLLECT_CHECK(again.ok() && again.value().streams.size() == 1);
    const auto same = rtc::stream_json(again.value().streams[0]);
    COLLECT_CHECK(same.ok() && same.value() == json.value());
  }
  return 0;
}
