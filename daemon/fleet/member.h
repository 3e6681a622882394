// This collector as a member of a fleet: keeps its entry and its leases in the fleet's database,
// and answers who the other members are. LEASES.md has the picture.
//
// Recording never waits for it: everything that talks to the database is on one thread of its own,
// which asks what the collector has at the moment, so that nothing is queued while the database is
// away. Without the database the collector works as one without a fleet, and says so in its
// statistics.
//
// Thread rules: every function may be called from any thread, start() and stop() once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collect/control/v1/fleet.pb.h"
#include "daemon/fleet/database.h"
#include "daemon/fleet/holding.h"
#include "daemon/fleet/lease_table.h"
#include "formats/core/result.h"

namespace collect::fleet {

inline constexpr std::chrono::milliseconds kRenewal{2'000};  // of the entry
inline constexpr std::chrono::milliseconds kLeastPause{
    200};                                       // between two rounds, whatever changes
inline constexpr int kRoundsBetweenChecks = 5;  // of leases that should be right
inline constexpr std::chrono::milliseconds kFirstPause{500};       // after a failure; doubles,
inline constexpr std::chrono::milliseconds kLongestPause{15'000};  // up to this
inline constexpr size_t kMaxQuestions = 64;                        // that wait at once

class Member {
 public:
  using Look = std::function<Holdings()>;
  using Answer = std::function<void(Result<std::vector<api::FleetCollector>>)>;

  // `look` says what the collector has now; it is called on the member's thread, and must not
  // block.
  Member(std::string database_url, Look look);
  ~Member();  // as stop(), without a bound of its own: kDatabaseLimit for what it is at

  // From now on the collector is in the fleet.
  Status start(Self self);
  // Leaves the fleet. False: the database did not answer in time; the others see that the entry is
  // not renewed.
  bool stop(std::chrono::milliseconds bound);
  // Something has changed that others are to know soon.
  void wake();

  // Answers on the member's thread. kUnavailable: the database does not answer, or there is no
  // thread yet or any more. kLimit: too many ask.
  void list(std::string device, Answer answer);
  api::FleetStatus status() const;

 private:
  struct Question {
    std::string device;
    Answer answer;
  };
  using Clock = std::chrono::steady_clock;

  void run(const Self& self);
  // Connects and renews. Ok: it is over, and the fleet was left.
  Status serve(const Self& self);
  // Until something is to be done; false: it is over. A round is due, or `soonest` if something has
  // changed.
  bool wait(Clock::time_point due, Clock::time_point soonest);
  bool take_due(Clock::time_point due, Clock::time_point soonest);
  // Those that wait now, and then there is time for a round again.
  Status answer_questions(LeaseTable& table);
  Status round(LeaseTable& table, const Self& self);
  void note_success(const LeaseCounts& counts, const Self& self);
  // Refuses who asks, until serve() has connected again.
  void note_failure(const Error& error);
  void refuse_questions(const Error& error);

  const std::string url_;
  const Look look_;

  // The member's thread alone.
  std::unordered_map<std::string, uint64_t> arrivals_;  // by key, of what the table has
  std::optional<Holdings> written_;                     // by this connection
  int rounds_until_check_ = 0;
  LeaseCounts counts_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Question> questions_;
  std::optional<Error> closed_ = Error{Code::kUnavailable, "not connected to the fleet yet"};
  bool stopping_ = false;
  bool woken_ = false;
  bool ended_ = true;  // the thread, if there was one
  api::FleetStatus status_;

  std::jthread thread_;
};

}  // namespace collect::fleet
