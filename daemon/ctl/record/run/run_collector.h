// The collector of a run: the one that runs already, or one of our own for as long as the run
// lasts.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "daemon/ctl/control/connection/control_target.h"
#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/run/embedded_daemon.h"
#include "formats/core/result.h"

namespace collect::ctl {

// A collector owns its root. Runs at the same time in one directory use ada_traces-2 and so on.
inline constexpr const char* kDefaultRoot = "ada_traces";
inline constexpr int kMaxDefaultRoots = 100;

enum class Phones : uint8_t { kNone, kAndroid, kIos };

struct CollectorRequest {
  std::string root;               // given: a collector of our own stores there
  ControlTarget control;          // address empty: not given
  Phones phones = Phones::kNone;  // it has to find agents on these
  std::string token_file = {};    // with the token that one of our own asks agents for; empty: none
  std::string guest_token_file = {};  // by which one of our own lets other users' agents in
  bool web = false;                   // one of our own serves the live page
};

struct RunCollector {
  std::unique_ptr<EmbeddedDaemon> embedded;  // null when one ran already
  std::string ingest;
  ControlTarget control;
  std::string root;
  std::string web = {};  // address of the live page of our own, with its token; empty: none
};

Result<RunCollector> find_collector(const CollectorRequest& wanted, JobSignals& signals);

// What makes agents that wait for it record.
std::string start_command(const RunCollector& collector);

// Where it stores, and how it is asked for more.
void announce(const RunCollector& collector, bool idle, std::ostream& err);

}  // namespace collect::ctl
