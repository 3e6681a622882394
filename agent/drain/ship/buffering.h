// What a full ring does, and the spool: as the settings say, and as the collector changes it.
// Drain thread only; part of DrainThread.
#pragma once

#include <cstdint>

#include "agent/drain/link/spool.h"
#include "agent/settings.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

class Buffering {
 public:
  // `settings` may be filled in later, before the first call.
  Buffering(const Settings& settings, Spool& spool) : settings_(settings), spool_(spool) {}

  // Opens the spool, if the settings ask for one. Without it the agent does what it can: it says
  // so, and keeps what its rings hold.
  void open_spool();
  // Null, or a static sentence; what comes before the part that failed is changed all the same.
  // `has_recording`: one runs, or is ending.
  const char* change(const collect_wire_SetBuffering& wanted, bool has_recording);

 private:
  const char* open(uint32_t megabytes);
  const char* change_full_policy(uint32_t when_full, bool has_recording);
  const char* change_spool(uint32_t megabytes);

  const Settings& settings_;
  Spool& spool_;
};

}  // namespace collect::agent
