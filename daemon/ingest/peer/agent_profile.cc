#include "daemon/ingest/peer/agent_profile.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ingest/clock/clock_fit.h"
#include "daemon/ingest/link/handshake.h"
#include "daemon/ingest/link/wire_values.h"
#include "formats/core/text/printable.h"
#include "proto/wire/codec_rules.h"

namespace collect::ingest {

AgentProfile::AgentProfile(IngestCore& core, AgentSnapshot agent)
    : core_(core), account_(core.budget.account({})), shown_(std::move(agent)) {
  shown_.id = core_.next_agent_id.fetch_add(1);
}

void AgentProfile::greet(const wire::Hello& hello, const principal::Principal& principal,
                         const std::string& peer, const std::string& dialled) {
  hello_ = hello;
  account_ = core_.budget.account(principal);
  AgentSnapshot fresh = agent_from_hello(hello);
  fresh.id = shown_.id;
  fresh.state = shown_.state;
  fresh.session = shown_.session;
  fresh.connected_at = shown_.connected_at;
  fresh.reconnects = shown_.reconnects;
  fresh.address = dialled.empty() ? peer : dialled;
  fresh.dialled = !dialled.empty();
  fresh.status = shown_.status;
  fresh.start_filter = shown_.start_filter;
  shown_ = std::move(fresh);
}

uint64_t AgentProfile::agreed_features() const {
  uint64_t offered = wire::kFeatureStartFilter;
  if (core_.options.page_codecs) {
    const bool is_of_this_machine = !hello_.boot_id().empty() && hello_.boot_id() == boot_id();
    offered |= wire::codec_features(is_of_this_machine);
  }
  return offered & hello_.features();
}

std::string AgentProfile::name_for_log() const {
  return fmt::format("{} {}", name(), in_quotes(shown_.process_name));
}

void AgentProfile::count_connection() {
  if (std::exchange(was_connected_, true)) ++shown_.reconnects;
  shown_.connected_at = std::chrono::system_clock::now();
}

void AgentProfile::set_state(AgentState state, const std::string& status) {
  shown_.state = state;
  shown_.status = status;
  storage::bound_text(shown_.status);  // it may be what the agent said, as long as a frame
  show();
}

bool AgentProfile::take(const wire::Heartbeat& beat) {
  const DetailMode mode = detail_mode(beat.detail());
  // Pages that are sent as they are change nothing.
  const bool encodes = beat.link_raw_bytes() != beat.link_sent_bytes();
  const bool has_changed = mode != shown_.detail || counters_changed_ ||
                           beat.spooled_bytes() != shown_.spooled_bytes ||
                           (encodes && beat.link_sent_bytes() != shown_.link_sent_bytes);
  shown_.detail = mode;
  shown_.link_raw_bytes = beat.link_raw_bytes();
  shown_.link_sent_bytes = beat.link_sent_bytes();
  shown_.spooled_bytes = beat.spooled_bytes();
  if (std::exchange(counters_changed_, false)) shown_.counters = counters_.values();
  return has_changed;
}

Status AgentProfile::take(const wire::Counters& counters) {
  COLLECT_TRY(counters_.take(counters));
  counters_changed_ = true;
  return {};
}

void AgentProfile::show() {
  core_.observer.agent_changed(shown_);
}

}  // namespace collect::ingest
