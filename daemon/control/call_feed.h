// What collectord and collect-calls, which it starts for each WatchCalls, say to each other over
// pipes: frames of a length (u32, little-endian), a kind and a body. The daemon sends one kRequest;
// the program answers with kBatch after kBatch, and kError before it gives up.
//
// Pure; FeedReader: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/control/v1/calls.pb.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::control {

inline constexpr size_t kMaxFeedBodyBytes = size_t{1} << 20;

enum class FeedKind : uint8_t { kRequest = 1, kBatch = 2, kError = 3 };

std::string feed_frame(FeedKind kind, std::string_view body);

// Frames out of bytes as they come.
class FeedReader {
 public:
  using Take = std::function<Status(FeedKind, std::string_view body)>;

  // kDamaged: no frame, or one longer than the limit; else what `take` said.
  Status take(Bytes bytes, const Take& take_frame);
  bool is_between_frames() const { return buffer_.empty(); }

 private:
  std::string buffer_;
};

struct FeedRequest {
  std::string directory;    // of the session, absolute
  bool finds_names = true;  // functions are looked up, as after the seal
  std::vector<std::string> symbol_directories;
  std::vector<std::string> symbol_roots;
  v1::WatchCallsRequest wanted;

  std::string body() const;
  // kDamaged: it is none.
  static Result<FeedRequest> parse(std::string_view body);
};

}  // namespace collect::control
