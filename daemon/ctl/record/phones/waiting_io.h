// Operations of Asio for a program that has one thread and waits for each answer. Other operations
// continue during a wait.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "formats/core/result.h"

namespace collect::ctl {

// How soon an interruption ends a wait.
inline constexpr std::chrono::milliseconds kInterruptionLook{50};

class WaitingIo {
 public:
  using Predicate = std::function<bool()>;

  WaitingIo() : work_(io_.get_executor()) {}

  // While it returns true, waits end with kCancelled; null: nothing interrupts.
  void set_interrupted(Predicate interrupted) { interrupted_ = std::move(interrupted); }

  // Works until `is_done`; kUnavailable with `what` at the bound.
  Status wait(const Predicate& is_done, std::chrono::milliseconds bound, const std::string& what);
  void work_for(std::chrono::milliseconds time) { io_.run_for(time); }

  // What `ask` hands to its callback. The answer is in memory of its own: it may come after the
  // wait has ended.
  template <class T>
  Result<T> answer_of(const std::function<void(std::function<void(Result<T>)>)>& ask,
                      std::chrono::milliseconds bound, const std::string& what) {
    const auto answer = std::make_shared<std::optional<Result<T>>>();
    ask([answer](Result<T> value) { answer->emplace(std::move(value)); });
    const Status waited = wait([&answer] { return answer->has_value(); }, bound, what);
    if (!waited.ok()) return waited.error();
    return std::move(**answer);
  }

  asio::io_context& io() { return io_; }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;  // io_ always has something
  Predicate interrupted_;
};

}  // namespace collect::ctl
