// Any bytes as what the daemon and collect-calls say to each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/control/call_feed.h"

using namespace collect;
using namespace collect::control;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, size);
  // In pieces as in one.
  size_t frames = 0;
  size_t in_pieces = 0;
  FeedReader whole;
  const Status one = whole.take(bytes, [&](FeedKind kind, std::string_view body) -> Status {
    ++frames;
    if (body.size() > kMaxFeedBodyBytes) std::abort();
    if (kind == FeedKind::kRequest) (void)FeedRequest::parse(body);
    return {};
  });
  FeedReader pieces;
  Status last;
  for (size_t at = 0; at < bytes.size() && last.ok(); at += 3) {
    last = pieces.take(bytes.subspan(at, std::min<size_t>(3, bytes.size() - at)),
                       [&](FeedKind, std::string_view) -> Status {
                         ++in_pieces;
                         return {};
                       });
  }
  if (one.ok() != last.ok() || frames != in_pieces) std::abort();
  // A request that is taken comes back as it was.
  const auto request =
      FeedRequest::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (request.ok() && !FeedRequest::parse(request->body()).ok()) std::abort();
  return 0;
}
