// The checks of an agent: those that look at one whole session, and those that do something to an
// agent of their own.
#pragma once

#include <span>

#include "proto/conformance/agents/agent_bench.h"
#include "proto/conformance/check.h"

namespace collect::conformance {

inline constexpr uint64_t kFlushCommand = 7;  // of the whole session
inline constexpr uint64_t kUnknownCommand = 8;

struct AgentCheck {
  Rule rule;
  Verdict (*judge)(AgentBench& bench);
};

std::span<const AgentCheck> agent_session_checks();
std::span<const AgentCheck> agent_action_checks();

}  // namespace collect::conformance
