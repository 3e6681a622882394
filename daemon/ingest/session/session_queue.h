// What is to be done with one session, in its order: tasks come from the session's io thread, a
// data thread carries them out in rounds, and each round ends with a commit and a report.
//
//   io thread:      push(), command(), seal(), suspend()   <- reports, merged: one is on its way
//   data thread:    run(): all that waits, then the commit; never two rounds at once
//   sealing thread: the last step (SessionSealing)
//
// The pages of a data channel do not pass through here: the turn of a DataLane is a task that reads
// and stores them.
#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/ingest/session/session_report.h"
#include "daemon/ingest/session/session_sealing.h"
#include "daemon/ingest/session/stored_session.h"

namespace collect::ingest {

class WorkThreads;

class SessionQueue : public std::enable_shared_from_this<SessionQueue> {
 public:
  struct Dependencies {  // outlive the queue
    WorkThreads* data_threads;
    WorkThreads* seal_threads;
    StoredSession::Dependencies storage;
  };
  using OnReport = std::function<void(SessionReport)>;
  // After kExhausted it is called again, at its place. Other errors end the session.
  using Act = std::function<Status(StoredSession&)>;
  // Instead, when the session stores nothing more. On a data thread.
  using OnDrop = std::function<void()>;

  // Reports come on `io`. The first task opens or resumes the session. What it takes is charged to
  // the account.
  SessionQueue(const Dependencies& dependencies, asio::any_io_executor io,
               std::shared_ptr<principal::Account> account, OnReport on_report);

  // ---- io thread
  void push(Act act, OnDrop on_drop = nullptr) { add(Task{std::move(act), std::move(on_drop)}); }
  // What a person wants done. Answered exactly once, on the io thread, after the commit that makes
  // it last.
  void command(std::function<Result<std::string>(storage::Session&)> act,
               std::function<void(Result<std::string>)> done) {
    add(Command{std::move(act), std::move(done)});
  }
  void note(std::string text);
  // Only the commit that ends each round.
  void commit() { add(Task{}); }
  void seal(storage::SessionState state, std::string reason) {
    add(SessionSeal{state, std::move(reason)});
  }
  // The collector stops, and the next one continues with the session: nothing more goes into it
  // here.
  void suspend(std::string why) { add(Suspend{std::move(why)}); }
  // It keeps more files open than it should: a commit closes some.
  bool has_too_many_files() const { return session_.charges().over_limit(); }
  // From now on; null: to no one.
  void report_to(OnReport on_report) { on_report_ = std::move(on_report); }

 private:
  struct Task {
    Act act;
    OnDrop on_drop;
  };
  struct Command {
    std::function<Result<std::string>(storage::Session&)> act;
    std::function<void(Result<std::string>)> done;
  };
  struct Suspend {
    std::string why;
  };
  using Item = std::variant<Task, Command, SessionSeal, Suspend>;

  void add(Item item);
  void schedule();
  void run();
  void carry_out_all(const std::vector<Item>& items, size_t& at, bool& waits);
  Status carry_out(const Task& task);
  Status carry_out(const Command& command);
  Status carry_out(const SessionSeal& seal);
  Status carry_out(const Suspend& suspend);
  void refuse(const Task& task, const char* why);
  void refuse(const Command& command, const char* why);
  void refuse(const SessionSeal&, const char*) {}
  void refuse(const Suspend&, const char*) {}
  bool finish_round();
  void answer_orders();
  void begin_seal(SessionSeal seal);
  void attempt_seal();
  void publish();
  void deliver();
  const principal::Principal& principal() const { return session_.charges().account().principal(); }

  // constant after construction
  const Dependencies dependencies_;
  const asio::any_io_executor io_;

  // io thread
  OnReport on_report_;

  // guarded by mutex_
  std::mutex mutex_;
  std::vector<Item> items_;
  bool scheduled_ = false;  // a round is to come, or runs
  bool report_on_its_way_ = false;
  SessionReport report_;

  // the thread of the round; from begin_seal() on, the sealing thread has session_ and sealing_
  StoredSession session_;
  std::mutex sealing_mutex_;
  std::optional<SessionSealing> sealing_;
  bool over_ = false;  // it is being sealed, or suspended
  std::optional<SessionSeal> wanted_seal_;
  milliseconds wait_{0};  // before the next round, where this one could not continue
  // Carried out in this round, or refused; answered after the commit.
  std::vector<std::pair<std::function<void(Result<std::string>)>, Result<std::string>>> answers_;
};

}  // namespace collect::ingest
