// The environment of a traced program: the caller's, with the agent preloaded and its settings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

// What an agent reads from COLLECT_* variables; unset ones stay as the caller has them.
struct AgentSettings {
  std::string library;       // absolute path
  std::string connect;       // "host:port" of the collector's ingest
  std::string run = {};      // folder in which processes say that they are there; empty: none
  std::string run_key = {};  // that the collector lets processes of other users in by; empty: none
  std::string tag;
  std::optional<std::string> detail;  // off, armed, on
  std::optional<std::string> full;    // drop, overwrite, wait; see below
  std::optional<std::string> drain;   // thread, process; see below
  std::optional<uint32_t> buffer_mb;
  std::optional<uint32_t> max_depth;
  std::optional<uint32_t> max_rate;
  std::optional<std::string> longer_than;  // with its unit
  std::vector<std::string> only;           // patterns of functions; empty: as the caller has them
  std::vector<std::string> except;
  std::optional<std::string> max_time;  // with its unit
  uint64_t max_time_since_ns = 0;  // from when it counts, CLOCK_BOOTTIME; 0: each process's start
  std::optional<uint64_t> max_bytes;
  bool start_idle = false;
  bool no_switches = false;             // no times off the processor
  std::optional<std::string> libcalls;  // off, on, or patterns of library functions; see below
  std::optional<std::string> sample;    // "1kHz", "999Hz", "1000": samples in a second
  std::string plans;                    // folder with patch plans; empty: as the caller has it
  // The one process that is recorded has this parent; 0: every process is, unless the caller says
  // so.
  pid_t only_child_of = 0;
  std::optional<uint32_t> atf_version;
};

// "1kHz", "999Hz", "1000". kInvalidArgument: it is none of 1 to 10,000 in a second.
Result<uint32_t> sample_hz(std::string_view text);

// Puts into `environment` what `settings` says of the recording itself: tag, detail, memory,
// limits, functions. kInvalidArgument: a pattern that no agent takes.
Status set_recording(std::vector<std::string>& environment, const AgentSettings& settings);

// "NAME=value" entries. What neither `settings` nor the caller's variables say is for someone at a
// workstation, who wants all of it: full = wait, drain = process, libcalls and switches = on.
// LD_PRELOAD keeps what it had, after the agent. kInvalidArgument when the library's path cannot be
// part of LD_PRELOAD.
Result<std::vector<std::string>> agent_environment(const std::vector<std::string>& base,
                                                   const AgentSettings& settings);

// Whether the environment makes threads wait where a ring is full.
bool waits_when_full(const std::vector<std::string>& environment);

// Whether the environment makes agents wait for a command before they record.
bool starts_idle(const std::vector<std::string>& environment);

// Whether the environment ends recordings after a time.
bool ends_by_time(const std::vector<std::string>& environment);

// Whether the environment has functions switched off that are called too often.
bool limits_rates(const std::vector<std::string>& environment);

// Whether the environment has patterns of functions.
bool filters_functions(const std::vector<std::string>& environment);

// Whether the environment leaves out what the program starts.
bool records_one_process(const std::vector<std::string>& environment);

// Whether the environment makes agents drain from a process of their own, which outlives a crash.
bool drains_by_process(const std::vector<std::string>& environment);

// This process's environment.
std::vector<std::string> own_environment();

// The caller's own COLLECT_TAG, or empty.
std::string given_tag(const std::vector<std::string>& environment);

// "run-" and 64 random bits: the same for every process of one run.
std::string new_run_tag();

}  // namespace collect::ctl
