// Any bytes as what the daemon and collect-symbolizer say to each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/protocol.h"

namespace {

using namespace collect;
using namespace collect::symbolize;

void decode(FrameKind kind, Bytes body) {
  std::vector<NamedAddress> names;
  std::vector<LineOfAddress> lines;
  std::vector<uint32_t> functions;
  switch (kind) {
    case FrameKind::kRequest: {
      const auto request = decode_request(body);
      // What is taken is what would be sent.
      if (request.ok() &&
          encode_request(*request) != std::vector<uint8_t>(body.begin(), body.end())) {
        std::abort();
      }
      break;
    }
    case FrameKind::kSource:
      (void)decode_source(body);
      break;
    case FrameKind::kNames:
      if (decode_names(body, names).ok() && names.size() > body.size() / 6) std::abort();
      break;
    case FrameKind::kLines:
      if (decode_lines(body, lines).ok() && lines.size() > body.size() / 10) std::abort();
      break;
    case FrameKind::kFunctions:
      if (decode_functions(body, functions).ok() && functions.size() != body.size() / 4) {
        std::abort();
      }
      break;
    case FrameKind::kDone:
      (void)decode_done(body);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, size);
  // As a stream, and every decoder on the bytes as they are: checksums keep most inputs out.
  FrameReader reader(kMaxAnswerFrameBytes);
  for (size_t at = 0; at < bytes.size(); at += 7) {
    reader.push(bytes.subspan(at, std::min<size_t>(7, bytes.size() - at)));
    while (true) {
      const auto frame = reader.next();
      if (!frame.ok() || !*frame) break;
      decode((*frame)->kind, (*frame)->body);
    }
  }
  for (const FrameKind kind : {FrameKind::kRequest, FrameKind::kSource, FrameKind::kNames,
                               FrameKind::kLines, FrameKind::kFunctions, FrameKind::kDone}) {
    decode(kind, bytes);
  }
  return 0;
}
