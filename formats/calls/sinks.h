// Several sinks of ThreadCalls as one: each is given everything, in the order of the arguments.
#pragma once

#include <tuple>

#include "formats/calls/call.h"

namespace collect::calls {

template <class... Each>
class Sinks : public CallSink {
 public:
  // They outlive it.
  explicit Sinks(Each&... each) : each_(each...) {}

  void on_call_begin(const Call& call) {
    std::apply([&](auto&... each) { (each.on_call_begin(call), ...); }, each_);
  }
  void on_call_end(const EndedCall& call) {
    std::apply([&](auto&... each) { (each.on_call_end(call), ...); }, each_);
  }
  void on_lone_end(uint32_t slot, EndReason reason, const Moment& moment) {
    std::apply([&](auto&... each) { (each.on_lone_end(slot, reason, moment), ...); }, each_);
  }
  void on_untimed(uint32_t slot, atf::EventKind kind) {
    std::apply([&](auto&... each) { (each.on_untimed(slot, kind), ...); }, each_);
  }
  void on_wait(uint64_t ns, size_t depth) {
    std::apply([&](auto&... each) { (each.on_wait(ns, depth), ...); }, each_);
  }
  void on_gap(const Gap& gap, const Moment& last) {
    std::apply([&](auto&... each) { (each.on_gap(gap, last), ...); }, each_);
  }

 private:
  std::tuple<Each&...> each_;
};

}  // namespace collect::calls
