// What a full ring does, and the spool: as the settings say, and as the collector changes it.
#include "agent/drain/drain_thread.h"
#include "agent/drain/status.h"

namespace collect::agent {

// Null or a static sentence. Without it the agent does what it can: it says so, and keeps what its
// rings hold.
const char* DrainThread::open_spool(uint32_t megabytes) {
  int error = 0;
  const char* why = shipper_.streams().spool().open(settings_.spool, megabytes, &error);
  if (why == nullptr) return nullptr;
  char line[kStatusBytes];
  Text(line, sizeof line)
      .add("no spool in ")
      .add(settings_.spool)
      .add(": ")
      .add(why)
      .add(": ")
      .add(errno_text(error));
  log_line(line);
  return why;
}

void DrainThread::set_buffering_by_command() {
  const collect_wire_SetBuffering& wanted = command_.what.set_buffering;
  const char* error = change_full_policy(enum_number(wanted.when_full));
  if (error == nullptr && wanted.sets_spool) error = change_spool(wanted.spool_mb);
  answer(command_.command_id, {error, now_ns()});
}

// Null or a static sentence.
const char* DrainThread::change_full_policy(uint32_t when_full) {
  if (when_full == collect_wire_SetBuffering_WhenFull_UNCHANGED) return nullptr;
  FullPolicy wanted = FullPolicy::kDrop;
  switch (when_full) {
    case collect_wire_SetBuffering_WhenFull_DROP:
      break;
    case collect_wire_SetBuffering_WhenFull_WAIT:
      wanted = FullPolicy::kWait;
      break;
    case collect_wire_SetBuffering_WhenFull_OVERWRITE:
      wanted = FullPolicy::kOverwrite;
      break;
    default:
      return "this agent does not know what to do when the ring is full";
  }
  if (wanted == full_policy()) return nullptr;
  const bool overwrites =
      wanted == FullPolicy::kOverwrite || full_policy() == FullPolicy::kOverwrite;
  if (overwrites && phase_ != Phase::kIdle) {
    return "overwrite can be chosen or left only while nothing is recorded";
  }
  set_full_policy(wanted);
  return nullptr;
}

// Null or a static sentence.
const char* DrainThread::change_spool(uint32_t megabytes) {
  Spool& spool = shipper_.streams().spool();
  const uint64_t limit = uint64_t{megabytes} << 20;
  if (megabytes > kMaxSpoolMb) return "a spool has at most 65536 MB";
  if (spool.is_open() && limit <= spool.capacity()) {
    spool.set_limit(limit);
    return nullptr;
  }
  if (megabytes == 0) return nullptr;
  if (settings_.spool[0] == '\0') {
    return "the program was started without a folder for a spool: set COLLECT_SPOOL there";
  }
  if (spool.is_open()) {
    if (!spool.is_empty()) return "the spool can't grow while it holds pages";
    spool.close();
  }
  return open_spool(megabytes);
}

}  // namespace collect::agent
