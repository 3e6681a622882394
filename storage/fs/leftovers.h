// What a command has made and no one shall find when Ctrl-C ends it half way.
#pragma once

#include <functional>
#include <string>

#include "formats/core/result.h"

namespace collect::storage {

// A file, or a directory with what is in it, that goes away with this object, and also when a
// signal ends the program meanwhile.
class Leftover {
 public:
  enum When : bool { kAlways, kIfEmpty };  // others may have put something into a directory

  Leftover() = default;  // of nothing
  explicit Leftover(std::string path, When when = kAlways);
  // Calls `create`, which makes the file or directory and returns its path. A signal takes effect
  // before `create` or when the path is registered, never in between.
  static Result<Leftover> made_by(const std::function<Result<std::string>()>& create,
                                  When when = kAlways);
  Leftover(Leftover&& other) noexcept;
  Leftover& operator=(Leftover&& other) noexcept;
  ~Leftover();

  const std::string& path() const { return path_; }
  // It has become what was wanted, or is gone: nothing is removed.
  void keep();

 private:
  void remove();

  std::string path_;  // empty: nothing
  When when_ = kAlways;
};

// Done, once, when a signal ends the program while this object is there; on the thread that waits
// for signals.
class EndingAction {
 public:
  explicit EndingAction(std::function<void()> action);
  ~EndingAction();
  EndingAction(const EndingAction&) = delete;
  EndingAction& operator=(const EndingAction&) = delete;

 private:
  const std::function<void()> action_;
};

// SIGINT, SIGTERM and SIGHUP do all EndingActions and remove all Leftovers before they end the
// program, unless they are ignored. Called once by the main thread, before there are others: a
// thread of its own waits for the signals, so no handler runs in the middle of anything.
void remove_leftovers_on_signals();

}  // namespace collect::storage
