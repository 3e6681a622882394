#include "daemon/ctl/look/tail.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

constexpr size_t kThreadColumns = 20;

void put_duration(google::protobuf::Duration& to, std::chrono::nanoseconds duration) {
  to.set_seconds(duration.count() / 1'000'000'000);
  to.set_nanos(static_cast<int32_t>(duration.count() % 1'000'000'000));
}

std::string padded(std::string text, size_t columns) {
  const size_t used = columns_of(text);
  return text + std::string(used < columns ? columns - used : 0, ' ');
}

class Tail {
 public:
  Tail(const Online& online, const FollowedCalls& followed)
      : online_(online), followed_(followed) {}

  int run() {
    Client client(online_.control);
    const Status status = client.watch_calls(followed_.request(), [&](const api::CallBatch& batch) {
      print(batch);
      online_.out.flush();
      return online_.out.good();
    });
    return status.ok() ? kExitOk : failed(online_, status.error());
  }

 private:
  void print(const api::CallBatch& batch) {
    if (online_.json) {
      online_.out << message_line(batch);
      return;
    }
    if (!has_head_) {
      online_.out << "# calls of " << short_name(batch.session())
                  << "; seconds since its begin, duration,"
                  << (batch.has_switches() ? " of it on a processor," : "")
                  << " thread, function\n";
      has_head_ = true;
    }
    for (const api::LiveCall& call : batch.calls()) print(call, batch.first_ns());
    remark(batch.skipped_calls(), "call", "ended and is not shown: --limit, --slower-than",
           "ended and are not shown: --limit, --slower-than");
    remark(batch.skipped_events(), "event", "was not followed: more came than can be",
           "were not followed: more came than can be");
    remark(batch.lost_events(), "event", "was lost by the recording itself",
           "were lost by the recording itself");
  }

  void print(const api::LiveCall& call, uint64_t first_ns) {
    char start[32];
    const uint64_t since_ns = call.start_ns() > first_ns ? call.start_ns() - first_ns : 0;
    std::snprintf(start, sizeof start, "%12.6f", static_cast<double>(since_ns) / 1e9);
    std::string took = fmt::format("{:>9}", duration_text(call.duration_ns()));
    if (call.has_cpu_ns()) took += fmt::format("  {:>9}", duration_text(call.cpu_ns()));
    const std::string thread =
        std::to_string(call.thread_id()) +
        (call.thread_name().empty() ? "" : " " + printable(call.thread_name()));
    std::string line = fmt::format("{}  {}  {}  ", start, took,
                                   padded(cut_to(thread, kThreadColumns), kThreadColumns));
    std::string function = printable(call.function());
    if (call.unwound()) function += "  (exception)";
    if (!call.caller().empty()) function += "  by " + printable(call.caller());
    online_.out << line << cut_to(function, columns_left(online_.columns, columns_of(line)))
                << "\n";
  }

  void remark(uint64_t count, const char* noun, const char* one, const char* many) {
    if (count == 0) return;
    online_.out << "# " << counted(count, noun) << " " << (count == 1 ? one : many) << "\n";
  }

  const Online& online_;
  const FollowedCalls& followed_;
  bool has_head_ = false;
};

}  // namespace

control::v1::WatchCallsRequest FollowedCalls::request() const {
  control::v1::WatchCallsRequest request;
  request.set_name(session);
  for (const std::string& word : functions) request.add_functions(word);
  for (const std::string& word : threads) request.add_threads(word);
  if (slower_than.count() != 0) put_duration(*request.mutable_least_duration(), slower_than);
  if (interval.count() != 0) put_duration(*request.mutable_interval(), interval);
  if (duration.count() != 0) put_duration(*request.mutable_duration(), duration);
  request.set_max_calls(limit);
  return request;
}

int tail(const Online& online, const FollowedCalls& followed) {
  return Tail(online, followed).run();
}

}  // namespace collect::ctl
