#include "daemon/ctl/control/session_conversion.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <ostream>
#include <stop_token>
#include <thread>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

void say(const Online& online, const char* what, const api::ConversionLoss& loss) {
  online.err << "collectctl: " << what << ": ";
  if (loss.count() != 0) online.err << with_thousands(loss.count()) << " ";
  online.err << printable_sentence(loss.what()) << "\n";
}

// A line that shows how long an answer has been waited for: what, and seconds. It is taken away
// with the object, in whose life no one else writes to the stream.
class WaitingLine {
 public:
  WaitingLine(std::ostream& err, const char* what)
      : thread_([this, &err, what](const std::stop_token& stop) { show(stop, err, what); }) {}

 private:
  void show(const std::stop_token& stop, std::ostream& err, const char* what) {
    const auto begin = std::chrono::steady_clock::now();
    bool shown = false;
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, stop, kStep, [&stop] { return stop.stop_requested(); })) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      restart_line(err);
      err << what << ", " << short_duration(waited.count());
      err.flush();
      shown = true;
    }
    if (shown) restart_line(err);
  }

  static constexpr std::chrono::milliseconds kStep{500};
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: it ends before what it uses
};

std::string contents_of(const api::Session& session) {
  return fmt::format("{} events, {} detail records, {}", with_thousands(session.events()),
                     with_thousands(session.detail_records()), short_bytes(session.stored_bytes()));
}

}  // namespace

int snapshot_session(const Online& online, const std::string& session) {
  std::optional<WaitingLine> line;
  if (online.terminal && !online.json) line.emplace(online.err, "making the copy");
  const auto made = Client(online.control).snapshot_session(session);
  line.reset();
  if (!made.ok()) return failed(online, made.error());
  if (online.json) {
    online.out << message_line(*made);
  } else {
    online.out << short_name(made->name()) << ": " << contents_of(*made) << "\n";
  }
  online.out.flush();
  if (!made->missing().empty()) {
    online.err << "collectctl: " << printable_sentence(made->missing()) << "\n";
    online.err.flush();
  }
  return made->state() == api::SESSION_STATE_COMPLETE ? kExitOk : kExitFailed;
}

int pack_sessions(const Online& online, const std::vector<std::string>& sessions, bool unpack) {
  Client client(online.control);
  for (const std::string& session : sessions.empty() ? std::vector<std::string>{""} : sessions) {
    std::optional<WaitingLine> line;
    if (online.terminal && !online.json) line.emplace(online.err, unpack ? "unpacking" : "packing");
    const auto done = unpack ? client.unpack_session(session) : client.pack_session(session);
    line.reset();
    if (!done.ok()) return failed(online, done.error());
    if (online.json) {
      online.out << message_line(*done);
    } else {
      online.out << short_name(done->name())
                 << fmt::format(": {}, {} of thread files, {} of containers\n",
                                done->packed() ? "packed" : "not packed",
                                short_bytes(done->stored_bytes()),
                                short_bytes(done->container_bytes()));
    }
    online.out.flush();
  }
  return kExitOk;
}

int convert_session(const Online& online, const ConversionOptions& options) {
  api::ConvertSessionRequest request;
  request.set_name(options.session);
  request.set_atf_version(options.atf_version);
  bool shown = false;
  const auto show = [&](const api::ConvertSessionProgress& progress) {
    if (!online.terminal || online.json || progress.has_end()) return;
    restart_line(online.err);
    online.err << "converting "
               << progress.done_bytes() * 100 / std::max<uint64_t>(progress.total_bytes(), 1)
               << " %";
    online.err.flush();
    shown = true;
  };
  const auto end = Client(online.control).convert_session(request, show);
  if (shown) restart_line(online.err);
  if (!end.ok()) return failed(online, end.error());
  const api::Session& made = end->session();
  if (online.json) {
    online.out << message_line(*end);
  } else {
    online.out << short_name(made.name()) << ": ATF version " << options.atf_version << ", "
               << contents_of(made) << "\n";
  }
  online.out.flush();
  for (const api::ConversionLoss& loss : end->missing()) say(online, "missing", loss);
  if (end->missing_left_out() != 0) {
    online.err << "collectctl: missing: " << end->missing_left_out() << " things more\n";
  }
  for (const api::ConversionLoss& loss : end->left_out()) say(online, "left out", loss);
  online.err.flush();
  const bool is_whole = end->missing().empty() && (!options.strict || end->left_out().empty());
  return is_whole ? kExitOk : kExitFailed;
}

}  // namespace collect::ctl
