// Every COLLECT_* variable that a program of this project reads, and which one someone may have
// meant by another. Nothing here allocates: the agent, collectctl and collectord all warn by it.
#pragma once

#include <string_view>

namespace collect {

// agent/AGENT.md "Settings".
inline constexpr std::string_view kAgentVariables[] = {
    "COLLECT_ATF_VERSION",
    "COLLECT_BUFFER_MB",
    "COLLECT_CHILD_OF",
    "COLLECT_CONNECT",
    "COLLECT_DETAIL",
    "COLLECT_DRAIN",
    "COLLECT_EXCEPT",
    "COLLECT_EXIT_FLUSH_MS",
    "COLLECT_FULL",
    "COLLECT_LIBCALLS",
    "COLLECT_LISTEN",
    "COLLECT_LOG",
    "COLLECT_LONGER_THAN",
    "COLLECT_MAX_DEPTH",
    "COLLECT_MAX_RATE",
    "COLLECT_MAX_SIZE",
    "COLLECT_MAX_TIME",
    "COLLECT_ONLY",
    "COLLECT_PLANS",
    "COLLECT_RUN",
    "COLLECT_RUN_KEY",
    "COLLECT_SAMPLE",
    "COLLECT_SPOOL",
    "COLLECT_SPOOL_MB",
    "COLLECT_START",
    "COLLECT_SWITCHES",
    "COLLECT_TAG",
    "COLLECT_TLS_CA",
    "COLLECT_TLS_CERTIFICATE",
    "COLLECT_TLS_KEY",
    "COLLECT_TOKEN_FILE",
};

// daemon/ctl/CTL.md "Environment".
inline constexpr std::string_view kCommandLineVariables[] = {
    "COLLECT_AGENT_LIBRARY",           "COLLECT_CLICKHOUSE",      "COLLECT_COLLECTORD",
    "COLLECT_COMPLETION_SECONDS",      "COLLECT_CONTROL",         "COLLECT_CONTROL_TLS_CA",
    "COLLECT_CONTROL_TLS_CERTIFICATE", "COLLECT_CONTROL_TLS_KEY", "COLLECT_CONTROL_TLS_NAME",
    "COLLECT_CONTROL_TOKEN_FILE",
};

struct UnknownVariable {
  std::string_view name;
  std::string_view nearest;  // empty: none is near
};

// Whether `entry` ("NAME=value", as environ has them) begins with COLLECT_ and is none of these.
// The names that gcc gives to its linker, and those of our own tests and scripts, are passed by.
bool is_unknown_variable(const char* entry, UnknownVariable& unknown);

// add(text) for each part of the sentence that warns of it. `shown` makes a name of an environment
// fit to be printed.
template <class Add, class Shown>
void put_unknown_variable(const UnknownVariable& unknown, Add add, Shown shown) {
  add("unknown variable ");
  add(shown(unknown.name));
  if (unknown.nearest.empty()) return;
  add("; did you mean ");
  add(unknown.nearest);
  add("?");
}

// say(const UnknownVariable&) for each of an environment.
template <class Say>
void for_each_unknown_variable(const char* const* environment, Say say) {
  UnknownVariable unknown;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (is_unknown_variable(*environment, unknown)) say(unknown);
  }
}

}  // namespace collect
