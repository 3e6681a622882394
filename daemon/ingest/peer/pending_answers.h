// Questions that wait for their answer, by a key. Each is answered exactly once: with a value, by
// its deadline or by the end of the link. Whoever is answered may ask again.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ingest/session/live_session.h"

namespace collect::ingest {

template <class T>
class PendingAnswers {
 public:
  size_t size() const { return pending_.size(); }
  void add(uint64_t key, Answer<T> done, SteadyTime deadline) {
    pending_.emplace(key, Pending{std::move(done), deadline});
  }
  // All that wait for the key, in the order in which they came; a key that nobody waits for is
  // passed by.
  void answer(uint64_t key, const T& value) {
    finish([key](uint64_t of, const Pending&) { return of == key; }, Result<T>(value));
  }
  void fail_all(const std::string& reason) {
    finish([](uint64_t, const Pending&) { return true; }, Error{Code::kUnavailable, reason});
  }
  void fail_late(SteadyTime now, const std::string& reason) {
    finish([now](uint64_t, const Pending& one) { return one.deadline <= now; },
           Error{Code::kUnavailable, reason});
  }

 private:
  struct Pending {
    Answer<T> done;
    SteadyTime deadline;
  };

  template <class Fits>
  void finish(const Fits& fits, const Result<T>& result) {
    std::vector<Answer<T>> finished;
    std::erase_if(pending_, [&](auto& one) {
      if (!fits(one.first, one.second)) return false;
      finished.push_back(std::move(one.second.done));
      return true;
    });
    for (const Answer<T>& done : finished) done(result);
  }

  std::multimap<uint64_t, Pending> pending_;
};

}  // namespace collect::ingest
