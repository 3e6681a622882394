// The names of all environment variables that begin with COLLECT_, of every program of the project:
// so that each can tell a misspelt one, and none takes another's for misspelt.
#pragma once

#include <cstddef>

namespace collect {

inline constexpr char kVariablePrefix[] = "COLLECT_";
inline constexpr size_t kMaxVariableName = 40;  // longer ones are near to none of ours

// Sorted.
inline constexpr const char* kCollectVariables[] = {
    "COLLECT_AGENT_LIBRARY",
    "COLLECT_ATF_VERSION",
    "COLLECT_BUFFER_MB",
    "COLLECT_COLLECTORD",
    "COLLECT_CONNECT",
    "COLLECT_CONTROL",
    "COLLECT_CONTROL_TLS_CA",
    "COLLECT_CONTROL_TLS_CERTIFICATE",
    "COLLECT_CONTROL_TLS_KEY",
    "COLLECT_CONTROL_TLS_NAME",
    "COLLECT_CONTROL_TOKEN_FILE",
    "COLLECT_DETAIL",
    "COLLECT_DRAIN",
    "COLLECT_EXIT_FLUSH_MS",
    "COLLECT_FULL",
    "COLLECT_LISTEN",
    "COLLECT_LOG",
    "COLLECT_SPOOL",
    "COLLECT_SPOOL_MB",
    "COLLECT_START",
    "COLLECT_TAG",
    "COLLECT_TLS_CA",
    "COLLECT_TLS_CERTIFICATE",
    "COLLECT_TLS_KEY",
    "COLLECT_TOKEN_FILE",
};

// Whether "NAME=value" is a variable with our prefix that no program of ours reads.
bool is_unknown_variable(const char* entry);
// The name of ours that differs least from that of `entry`; null when all differ by more than a
// third of their letters. Allocates nothing.
const char* nearest_variable(const char* entry);

}  // namespace collect
