// The C API, as agent.h describes it.
#include <string.h>

#include "agent/drain/drain.h"
#include "agent/lifecycle.h"
#include "agent/ring/counters.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/recorder.h"
#include "collect/agent.h"

namespace {

namespace agent = collect::agent;

constexpr size_t kFirstOptionsBytes = offsetof(collect_agent_options, drain);

template <size_t kBytes>
bool copy_text(char (&to)[kBytes], const char* from) {
  if (from == nullptr) return true;
  const size_t bytes = strnlen(from, kBytes);
  if (bytes == kBytes) return false;
  memcpy(to, from, bytes + 1);
  return true;
}

bool fill_settings(const collect_agent_options& given, agent::Settings& settings) {
  const char* address = given.connect != nullptr ? given.connect : given.listen;
  if (address == nullptr) return false;
  settings.role = given.connect != nullptr ? agent::Role::kConnect : agent::Role::kListen;
  if (!copy_text(settings.address, address) || !copy_text(settings.token_file, given.token_file) ||
      !copy_text(settings.only, given.only) || !copy_text(settings.except, given.except) ||
      !copy_text(settings.tag, given.tag) || !copy_text(settings.spool, given.spool)) {
    return false;
  }
  if (given.buffer_mb > agent::kMaxBufferMb || given.full_policy > COLLECT_FULL_WAIT ||
      given.detail > COLLECT_DETAIL_ON || given.drain > COLLECT_DRAIN_PROCESS ||
      given.atf_version > 2) {
    return false;
  }
  // Earlier headers have unused bytes where spool_mb is now, and no `spool`.
  if (given.spool != nullptr && given.spool_mb > agent::kMaxSpoolMb) return false;
  if (given.max_depth > agent::kMaxMaxDepth) return false;
  settings.max_depth = given.max_depth;
  if (given.max_rate > agent::kMaxMaxRate) return false;
  settings.max_rate = given.max_rate;
  if (given.longer_than_ns > agent::kMaxLongerThanNs) return false;
  settings.longer_than_ns = given.longer_than_ns;
  if (given.max_time_ns > agent::kMaxMaxTimeNs || given.max_bytes > agent::kMaxMaxBytes) {
    return false;
  }
  settings.max_time_ns = given.max_time_ns;
  settings.max_bytes = given.max_bytes;
  settings.this_process_only = given.this_process_only != 0;
  if (given.spool_mb != 0) settings.spool_mb = given.spool_mb;
  if (given.buffer_mb != 0) settings.buffer_mb = given.buffer_mb;
  if (given.atf_version != 0) settings.atf_version = static_cast<uint8_t>(given.atf_version);
  settings.full = static_cast<agent::FullPolicy>(given.full_policy);
  settings.drain = static_cast<agent::DrainBy>(given.drain);
  if (settings.drain == agent::DrainBy::kProcess) settings.exit_flush_ms = agent::kProcessFlushMs;
  settings.detail = static_cast<uint8_t>(given.detail);
  settings.start_recording = given.start_idle == 0;
  return true;
}

void event(const void* function, const void* call_site, collect::atf::EventKind kind) {
  agent::HookFrame frame;
  frame.call_site = reinterpret_cast<uint64_t>(call_site);
  if (call_site != nullptr) frame.valid = collect::atf::kDetailLrValid;
  agent::on_event(reinterpret_cast<uint64_t>(function), kind, frame);
}

}  // namespace

extern "C" {

int collect_agent_start(const collect_agent_options* options) {
  // A program built with an earlier header ends before the fields that came later; a longer
  // structure comes from a later header.
  if (options == nullptr || options->struct_bytes < kFirstOptionsBytes) return -1;
  collect_agent_options known{};
  const size_t bytes = options->struct_bytes < sizeof known ? options->struct_bytes : sizeof known;
  memcpy(&known, options, bytes);
  agent::Settings settings = agent::default_settings;
  if (!fill_settings(known, settings)) return -1;
  return -static_cast<int>(agent::start_agent(settings));
}

void collect_agent_stop(uint32_t timeout_ms) {
  agent::stop_agent(timeout_ms);
}

void collect_enter(const void* function, const void* call_site) {
  event(function, call_site, collect::atf::EventKind::kCall);
}

void collect_exit(const void* function, const void* call_site) {
  event(function, call_site, collect::atf::EventKind::kReturn);
}

void collect_exception(const void* function, const void* call_site) {
  event(function, call_site, collect::atf::EventKind::kException);
}

void collect_counter(const char* name, int64_t value) {
  agent::set_counter(name, value);
}

void collect_agent_get_stats(collect_agent_stats* stats) {
  if (stats == nullptr || stats->struct_bytes < sizeof(collect_agent_stats)) return;
  const uint32_t struct_bytes = stats->struct_bytes;
  *stats = collect_agent_stats{};
  stats->struct_bytes = struct_bytes;
  if (!agent::recorder_ready()) return;
  const agent::RecorderStats now = agent::published_stats();
  stats->recording = agent::is_recording() ? 1 : 0;
  stats->connected = agent::drain_connected() ? 1 : 0;
  stats->threads = now.threads;
  stats->recorded = now.recorded;
  stats->lost = now.lost;
  stats->detail_recorded = now.detail_recorded;
  stats->detail_lost = now.detail_lost;
  stats->buffer_used = now.buffer_used;
  stats->buffer_bytes = now.buffer_bytes;
}

const char* collect_agent_status(void) {
  return agent::agent_status();
}

}  // extern "C"
