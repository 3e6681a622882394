// Every COLLECT_* variable that a program of this project reads, and what is wrong with the others.
// One list: agent/settings.cc reads those of the agent, collectctl those of the command line.
#pragma once

#include <string>
#include <vector>

namespace collect {

// agent/AGENT.md "Settings".
inline constexpr const char* kAgentVariables[] = {
    "COLLECT_ATF_VERSION", "COLLECT_BUFFER_MB",  "COLLECT_CONNECT",
    "COLLECT_DETAIL",      "COLLECT_DRAIN",      "COLLECT_EXIT_FLUSH_MS",
    "COLLECT_FULL",        "COLLECT_LISTEN",     "COLLECT_LOG",
    "COLLECT_SPOOL",       "COLLECT_SPOOL_MB",   "COLLECT_START",
    "COLLECT_TAG",         "COLLECT_TLS_CA",     "COLLECT_TLS_CERTIFICATE",
    "COLLECT_TLS_KEY",     "COLLECT_TOKEN_FILE",
};

// daemon/ctl/CTL.md "Environment".
inline constexpr const char* kCommandLineVariables[] = {
    "COLLECT_AGENT_LIBRARY",   "COLLECT_COLLECTORD",       "COLLECT_COMPLETION_SECONDS",
    "COLLECT_CONTROL",         "COLLECT_CONTROL_TLS_CA",   "COLLECT_CONTROL_TLS_CERTIFICATE",
    "COLLECT_CONTROL_TLS_KEY", "COLLECT_CONTROL_TLS_NAME", "COLLECT_CONTROL_TOKEN_FILE",
};

// A sentence for each variable of `environment` ("NAME=value", as environ has them) that begins
// with COLLECT_ and is none of these: "unknown variable COLLECT_BUFER_MB; did you mean
// COLLECT_BUFFER_MB?". The names that gcc gives to its linker, and those of our own tests and
// scripts, are passed by.
std::vector<std::string> unknown_variables(const char* const* environment);

}  // namespace collect
