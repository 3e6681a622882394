#include "agent/drain/ship/buffering.h"

#include "agent/drain/link/frames.h"
#include "agent/drain/link/status.h"
#include "agent/ring/recorder.h"

namespace collect::agent {

void Buffering::open_spool() {
  if (settings_.spool[0] != '\0') (void)open(settings_.spool_mb);
}

// Null or a static sentence.
const char* Buffering::open(uint32_t megabytes) {
  int error = 0;
  const char* why = spool_.open(settings_.spool, megabytes, &error);
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

const char* Buffering::change(const collect_wire_SetBuffering& wanted, bool has_recording) {
  const char* error = change_full_policy(enum_number(wanted.when_full), has_recording);
  if (error == nullptr && wanted.sets_spool) error = change_spool(wanted.spool_mb);
  return error;
}

// Null or a static sentence.
const char* Buffering::change_full_policy(uint32_t when_full, bool has_recording) {
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
  if (overwrites && has_recording) {
    return "overwrite can be chosen or left only while nothing is recorded";
  }
  set_full_policy(wanted);
  return nullptr;
}

// Null or a static sentence.
const char* Buffering::change_spool(uint32_t megabytes) {
  const uint64_t limit = uint64_t{megabytes} << 20;
  if (megabytes > kMaxSpoolMb) return "a spool has at most 65536 MB";
  if (spool_.is_open() && limit <= spool_.capacity()) {
    spool_.set_limit(limit);
    return nullptr;
  }
  if (megabytes == 0) return nullptr;
  if (settings_.spool[0] == '\0') {
    return "the program was started without a folder for a spool: set COLLECT_SPOOL there";
  }
  if (!spool_.is_empty()) return "the spool can't grow while it holds pages";
  return open(megabytes);
}

}  // namespace collect::agent
