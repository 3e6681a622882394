// collect-calls: follows the calls of one session for collectord, which starts it for a WatchCalls,
// gives it the request (daemon/control/call_feed.h) and takes its messages. A process of its own,
// so that no watch can delay the recording, and a damaged file is no danger to the daemon.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "daemon/control/call_feed.h"
#include "daemon/ctl/follow/call_follower.h"
#include "daemon/ctl/follow/limits.h"
#include "daemon/machine/limited_process.h"
#include "daemon/symbolize/symbolizer.h"
#include "formats/core/text/function_pattern.h"

namespace collect::ctl {
namespace {

using control::FeedKind;
using control::FeedRequest;
using follow::CallFollower;
using follow::FollowedSession;
using follow::LiveNames;
using Clock = std::chrono::steady_clock;

Status put(FeedKind kind, std::string_view body) {
  const std::string frame = control::feed_frame(kind, body);
  for (size_t at = 0; at < frame.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, frame.data() + at, frame.size() - at);
    if (wrote < 0 && errno != EINTR) return errno_error(errno, "standard output");
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
  return {};
}

Result<FeedRequest> read_request() {
  control::FeedReader reader;
  std::optional<Result<FeedRequest>> request;
  std::array<uint8_t, 16 * 1024> block{};
  while (!request) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "standard input");
    if (got == 0) return Error{Code::kTruncated, "the request ends early"};
    COLLECT_TRY(reader.take(Bytes(block.data(), static_cast<size_t>(got)),
                            [&](FeedKind, std::string_view body) {
                              request = FeedRequest::parse(body);
                              return Status();
                            }));
  }
  return std::move(*request);
}

std::chrono::nanoseconds length_of(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

Result<follow::FollowOptions> options_of(const control::v1::WatchCallsRequest& wanted) {
  follow::FollowOptions options;
  options.functions.assign(wanted.functions().begin(), wanted.functions().end());
  if (const auto words = parse_function_words(options.functions); !words.ok()) {
    return words.error();
  }
  for (const std::string& word : wanted.threads()) {
    auto pattern = storage::ThreadPattern::parse(word);
    if (!pattern.ok()) return pattern.error();
    options.threads.push_back(std::move(*pattern));
  }
  options.least_ns = static_cast<uint64_t>(length_of(wanted.least_duration()).count());
  options.most_calls = wanted.max_calls();
  return options;
}

std::optional<symbolize::SymbolizerOptions> symbolizer_of(const FeedRequest& request) {
  if (!request.finds_names) return std::nullopt;
  symbolize::SymbolizerOptions options;
  options.program = symbolize::symbolizer_program();
  options.directories = request.symbol_directories;
  options.roots = request.symbol_roots;
  return options;
}

class Follow {
 public:
  Follow(const FeedRequest& request, FollowedSession& session, LiveNames& names,
         CallFollower& follower)
      : session_(session),
        names_(names),
        follower_(follower),
        interval_(length_of(request.wanted.interval())),
        round_(std::min<std::chrono::nanoseconds>(interval_, follow::kRound)) {
    if (request.wanted.has_duration()) end_ = Clock::now() + length_of(request.wanted.duration());
  }

  Status run() {
    // What one look finds is read at the next one: the first message is not about that.
    std::this_thread::sleep_for(round_);
    COLLECT_TRY(session_.look());
    last_ = Clock::now();
    for (auto next = last_ + round_;; next = std::max(next + round_, Clock::now())) {
      std::this_thread::sleep_until(std::min(next, end_));
      COLLECT_TRY(session_.look());
      const bool has_more = follower_.read(Clock::now() + round_ / follow::kReadShare);
      if ((session_.is_sealed() && !has_more) || Clock::now() >= end_) {
        names_.finish(session_.manifest(), session_.said());
        return put_batch();
      }
      // Rounds are no exact parts of the interval.
      if (Clock::now() + round_ / 2 >= last_ + interval_) COLLECT_TRY(put_batch());
    }
  }

 private:
  Status put_batch() {
    const auto now = Clock::now();
    control::v1::CallBatch batch = follower_.take_batch();
    const auto ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - std::exchange(last_, now));
    batch.mutable_interval()->set_seconds(ns.count() / 1'000'000'000);
    batch.mutable_interval()->set_nanos(static_cast<int32_t>(ns.count() % 1'000'000'000));
    return put(FeedKind::kBatch, batch.SerializeAsString());
  }

  FollowedSession& session_;
  LiveNames& names_;
  CallFollower& follower_;
  const std::chrono::nanoseconds interval_;
  const std::chrono::nanoseconds round_;
  Clock::time_point last_;  // message
  Clock::time_point end_ = Clock::time_point::max();
};

Status follow_calls() {
  COLLECT_TRY(limit_process(follow::kMemoryBytes, follow::kNiceness));
  const auto request = read_request();
  if (!request.ok()) return request.error();
  const auto options = options_of(request->wanted);
  if (!options.ok()) return options.error();
  auto session = FollowedSession::open(request->directory);
  if (!session.ok()) return session.error();
  LiveNames names(symbolizer_of(*request));
  follow::find_recent_names(*session, names);
  COLLECT_TRY(session->look());  // that took its time: what is asked for begins now
  auto follower = CallFollower::make(*session, names, *options);
  if (!follower.ok()) return follower.error();
  return Follow(*request, *session, names, **follower).run();
}

int serve() {
  const Status followed = follow_calls();
  // Who does not take it has gone.
  if (!followed.ok()) (void)put(FeedKind::kError, followed.error().message);
  return 0;
}

}  // namespace
}  // namespace collect::ctl

int main() {
  try {
    return collect::ctl::serve();
  } catch (const std::bad_alloc&) {
    constexpr char kFrame[] =
        "\x2e\x00\x00\x00\x03"
        "following this session needs too much memory  ";
    return ::write(STDOUT_FILENO, kFrame, sizeof kFrame - 1) > 0 ? 0 : 1;
  }
}
