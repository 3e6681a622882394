#include "daemon/ctl/look/top.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/look/screen.h"
#include "daemon/ctl/look/top_view.h"
#include "formats/core/threads.h"
#include "storage/fs/rooted_directory.h"

namespace collect::ctl {
namespace {

double interval_seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + static_cast<double>(duration.nanos()) / 1e9;
}

// What the collector says of the session, beside what its calls say.
class SessionState {
 public:
  explicit SessionState(const Online& online) : client_(online.control) {}

  void update(TopView& view, const api::CallBatch& batch) {
    view.batch = batch;
    view.seconds = interval_seconds(batch.interval());
    const auto session = client_.session(batch.session());
    if (!session.ok()) return;  // the calls end too, and say why
    // Before the first message nothing was looked at: the recording's whole time is its interval.
    const bool is_first = view.session.name().empty();
    const double seconds = is_first ? session_seconds(*session) : view.seconds;
    const uint64_t before = is_first ? 0 : view.session.stored_bytes();
    const uint64_t stored = session->stored_bytes() - std::min(before, session->stored_bytes());
    view.stored_bytes_per_second = seconds > 0 ? static_cast<double>(stored) / seconds : 0;
    view.session = *session;
    if (session->agent().empty()) return;
    const auto agents = client_.agents(session->agent());
    if (agents.ok() && agents->size() == 1) view.spooled_bytes = agents->front().spooled_bytes();
  }

 private:
  Client client_;
};

TopView view_of(const TopOptions& options) {
  TopView view;
  view.sort = options.sort;
  view.shows_threads = options.shows_threads;
  return view;
}

Json json_of_view(const TopView& view) {
  Json document = json_document();
  document["session"] = json_of(view.session);
  api::CallBatch activity = view.batch;
  activity.clear_calls();
  document["activity"] = json_of(activity);
  document["spooled_bytes"] = view.spooled_bytes;
  return document;
}

// Table after table.
int print_tables(const Online& online, const TopOptions& options) {
  Client client(online.control);
  SessionState state(online);
  TopView view = view_of(options);
  uint64_t printed = 0;
  const Status status =
      client.watch_calls(options.followed.request(), [&](const api::CallBatch& batch) {
        state.update(view, batch);
        if (online.json) {
          online.out << json_line(json_of_view(view));
        } else {
          if (printed != 0) online.out << "\n";
          for (const std::string& line : view.lines(online.columns, 0)) online.out << line << "\n";
        }
        online.out.flush();
        return online.out.good() && ++printed != options.times;
      });
  return status.ok() ? kExitOk : failed(online, status.error());
}

// The messages come on a thread of their own, because keys are waited for too.
class Messages {
 public:
  Messages(const Online& online, const TopOptions& options)
      : changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    auto started = start_thread("messages", [this, &online, &options] {
      Status status;
      const Status done = contain([&] { status = follow(online, options); });
      apply([&] { end_ = done.ok() ? status : done; });
    });
    if (started.ok()) {
      thread_ = std::move(*started);
    } else {
      apply([&] { end_ = started.error(); });
    }
  }
  ~Messages() { stop_.request_stop(); }

  int descriptor() const { return changed_.get(); }
  std::optional<api::CallBatch> take() {
    uint64_t ignored = 0;
    (void)!::read(changed_.get(), &ignored, sizeof ignored);
    const std::lock_guard lock(mutex_);
    return std::exchange(batch_, std::nullopt);
  }
  std::optional<Status> end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }

 private:
  Status follow(const Online& online, const TopOptions& options) {
    Client client(online.control);
    return client.watch_calls(
        options.followed.request(),
        [this](const api::CallBatch& batch) {
          apply([&] { batch_ = batch; });
          return true;
        },
        stop_.get_token());
  }

  template <class Change>
  void apply(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    const uint64_t one = 1;
    (void)!::write(changed_.get(), &one, sizeof one);
  }

  mutable std::mutex mutex_;
  std::optional<api::CallBatch> batch_;  // guarded by mutex_
  std::optional<Status> end_;            // guarded by mutex_
  Descriptor changed_;
  std::stop_source stop_;
  std::jthread thread_;  // last: it ends before what it uses
};

// False: it was asked to end.
bool take_keys(TopView& view) {
  std::array<char, 64> keys{};
  const ssize_t got = ::read(STDIN_FILENO, keys.data(), keys.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  // An arrow or function key is a sequence: nothing here.
  if (got > 1 && keys[0] == '\x1b') return true;
  for (ssize_t i = 0; i < got; ++i) {
    if (!view.press(keys[static_cast<size_t>(i)])) return false;
  }
  return true;
}

int show_screen(const Online& online, const TopOptions& options) {
  SessionState state(online);
  TopView view = view_of(options);
  Messages messages(online, options);
  std::optional<Status> end;
  {
    std::optional<Screen> screen;  // from the first message on: an error before it is a line
    while (!end) {
      pollfd waiting[] = {{messages.descriptor(), POLLIN, {}}, {STDIN_FILENO, POLLIN, {}}};
      const int ready = ::poll(waiting, screen ? 2 : 1, -1);
      if (ready < 0 && errno != EINTR) return failed(online, errno_error(errno, "poll"));
      if (ready > 0 && waiting[1].revents != 0 && !take_keys(view)) break;
      if (ready > 0 && waiting[0].revents != 0) {
        const auto batch = messages.take();
        if (batch && !view.is_paused) state.update(view, *batch);
        if (batch && !screen) screen.emplace(online.out);
        end = messages.end();
      }
      if (screen) screen->show(view.lines(screen->columns(), screen->rows()));
      if (!online.out.good()) break;
    }
  }
  if (end && !end->ok()) return failed(online, end->error());
  for (const std::string& line : view.lines(online.columns, 0)) online.out << line << "\n";
  online.out.flush();
  return kExitOk;
}

}  // namespace

int top(const Online& online, const TopOptions& options) {
  const bool is_screen =
      online.terminal && !online.json && options.times == 0 && ::isatty(STDIN_FILENO) == 1;
  return is_screen ? show_screen(online, options) : print_tables(online, options);
}

}  // namespace collect::ctl
