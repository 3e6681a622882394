#include "storage/fs/leftovers.h"

#include <pthread.h>
#include <csignal>

#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "formats/core/threads.h"

namespace collect::storage {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};
// Threads that still write may put a file into a directory that is being removed.
constexpr int kRemoveTries = 100;

// The leftovers of this process; never destroyed, because a signal may come during exit().
struct Paths {
  std::recursive_mutex mutex;
  std::set<std::pair<std::string, Leftover::When>> all;
  std::set<const std::function<void()>*> actions;
};

Paths& paths() {
  static Paths* const made = new Paths;
  return *made;
}

void remove_path(const std::string& path, Leftover::When when) {
  std::error_code error;
  if (when == Leftover::kIfEmpty) {
    std::filesystem::remove(path, error);
    return;
  }
  for (int i = 0; i < kRemoveTries; ++i) {
    std::filesystem::remove_all(path, error);
    if (!error && !std::filesystem::exists(path, error)) return;
  }
}

// Never returns. The lock is kept: nothing new is registered, or released and used.
[[noreturn]] void end_by(int number) {
  Paths& registered = paths();
  registered.mutex.lock();
  for (const std::function<void()>* action : registered.actions) (*action)();
  // What is within a directory comes behind it in the order of names.
  for (auto at = registered.all.rbegin(); at != registered.all.rend(); ++at) {
    remove_path(at->first, at->second);
  }
  std::signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(number);
  std::_Exit(128 + number);
}

}  // namespace

Leftover::Leftover(std::string path, When when) : path_(std::move(path)), when_(when) {
  Paths& registered = paths();
  const std::lock_guard lock(registered.mutex);
  registered.all.emplace(path_, when_);
}

Result<Leftover> Leftover::made_by(const std::function<Result<std::string>()>& create, When when) {
  Paths& registered = paths();
  const std::lock_guard lock(registered.mutex);
  auto path = create();
  if (!path.ok()) return path.error();
  registered.all.emplace(*path, when);
  Leftover made;
  made.path_ = std::move(*path);
  made.when_ = when;
  return made;
}

Leftover::Leftover(Leftover&& other) noexcept
    : path_(std::exchange(other.path_, {})), when_(other.when_) {}

Leftover& Leftover::operator=(Leftover&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
    when_ = other.when_;
  }
  return *this;
}

Leftover::~Leftover() {
  remove();
}

void Leftover::remove() {
  if (path_.empty()) return;
  remove_path(path_, when_);
  keep();
}

void Leftover::keep() {
  if (path_.empty()) return;
  Paths& registered = paths();
  const std::lock_guard lock(registered.mutex);
  registered.all.erase({path_, when_});
  path_.clear();
}

EndingAction::EndingAction(std::function<void()> action) : action_(std::move(action)) {
  Paths& registered = paths();
  const std::lock_guard lock(registered.mutex);
  registered.actions.insert(&action_);
}

EndingAction::~EndingAction() {
  Paths& registered = paths();
  const std::lock_guard lock(registered.mutex);
  registered.actions.erase(&action_);
}

void remove_leftovers_on_signals() {
  sigset_t waited;
  sigemptyset(&waited);
  for (const int number : kEnding) {
    struct sigaction now{};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&waited, number);
    }
  }
  pthread_sigmask(SIG_BLOCK, &waited, nullptr);
  auto started = start_thread("signals", [waited] {
    int number = 0;
    while (::sigwait(&waited, &number) != 0) {
    }
    end_by(number);
  });
  if (started.ok()) {
    started->detach();
  } else {  // a signal ends the process as it does without us: what is half made stays
    pthread_sigmask(SIG_UNBLOCK, &waited, nullptr);
  }
}

}  // namespace collect::storage
