// One recording of an agent: a LiveSession, what it takes of its principal's budget until it is
// sealed (its threads and modules are SessionCharges' part), what it waits for, and what people
// want done with it.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/ingest/session/live_session.h"

namespace collect::ingest {

class AgentSession final : public LiveSession {
 public:
  // Why it is not to be waited for any longer.
  enum class Overdue : uint8_t { kNo, kAgentAway, kEndNotSent };

  AgentSession(IngestCore& core, asio::io_context& io,
               const std::shared_ptr<principal::Account>& account, uint32_t recording);

  const uint32_t recording;
  bool ended_by_agent = false;  // its RecordingEnd was read

  // ---- budget; an error: the principal has too much
  Status charge();
  // It is there, whether there is room for it or not.
  void charge_found();

  // ---- what comes
  void store(const storage::ClockSync& sync);
  void store(const storage::FunctionFilter& filter);
  void store_lost_without_stream(uint64_t count);
  // Takes a report, as LiveSession::take().
  void take_report(const SessionReport& report);
  void show_detail(DetailMode mode);

  // ---- what it waits for
  // Its files are closed until more comes.
  void wait_for_agent();
  void end_wait();
  // The agent is asked to end it. False: it was asked before.
  bool expect_end();
  bool expects_end() const { return stop_asked_at_.has_value(); }
  Overdue overdue(SteadyTime now, milliseconds resume) const;

  // ---- orders, answered after the commit that makes them last
  void annotate(const storage::Marker& marker, Answer<uint64_t> done);
  void roll_container(Answer<std::string> done);
  void cut(Answer<storage::SessionCut> done);

 private:
  principal::Lease place_;
  principal::Lease memory_;
  principal::Lease files_;
  SteadyTime progress_at_{};  // something arrived
  std::optional<SteadyTime> waiting_since_;
  std::optional<SteadyTime> stop_asked_at_;
};

}  // namespace collect::ingest
