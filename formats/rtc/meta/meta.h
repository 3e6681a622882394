// Meta and meta: the JSON array of streams, with the next free id as its last element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/meta/stream_info.h"

namespace collect::rtc {

struct Meta {
  std::vector<StreamInfo> streams;
  uint64_t next_id = kFirstStreamId;
  // What was wrong with single entries, which are left out, or with single keys, which are ignored.
  std::vector<std::string> complaints;
};

// kDamaged when it is no JSON array of objects with a number at the end, kLimit beyond
// kMaxMetaBytes, kMaxMetaDepth or kMaxStreams. `type` counts as `format` where that is missing.
Result<Meta> parse_meta(Bytes json);

// {"id":9,"name":"clk",...}; what has its default value is left out. kInvalidArgument when a text
// is no UTF-8 or an extra key holds no JSON or has a name of the format's own.
Result<std::string> stream_json(const StreamInfo& stream);

}  // namespace collect::rtc
