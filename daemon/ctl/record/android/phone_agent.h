// The agent's library for a phone: which file, and whether it is for that phone.
#pragma once

#include <array>
#include <string>

#include "formats/core/result.h"

namespace collect::ctl {

// Where an installation has it: ../lib/collectord/android/ABI/libcollect_agent.so beside the
// program.
std::string installed_phone_agent(const std::string& abi);

// Those that there is an agent for first.
inline constexpr std::array<const char*, 2> kAgentAbis = {"arm64-v8a", "x86_64"};

// `given` (--agent), else the installed one. kNotFound, kUnsupported: it is for another processor.
Result<std::string> find_phone_agent(const std::string& abi, const std::string& given);

}  // namespace collect::ctl
