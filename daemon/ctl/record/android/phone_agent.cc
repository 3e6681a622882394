#include "daemon/ctl/record/android/phone_agent.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <fstream>

#include "daemon/ctl/record/program/program_paths.h"

namespace collect::ctl {
namespace {

struct Machine {
  const char* abi;
  uint16_t number;  // e_machine
};
// Those that there is an agent for first.
constexpr std::array<Machine, 4> kMachines = {
    {{"arm64-v8a", 183}, {"x86_64", 62}, {"armeabi-v7a", 40}, {"x86", 3}}};

// e_machine of an ELF file; 0: it is none.
uint16_t machine_of(const std::string& path) {
  constexpr size_t kMachineAt = 18;
  std::array<char, 20> header{};
  std::ifstream file(path, std::ios::binary);
  file.read(header.data(), header.size());
  if (!file || std::string_view(header.data(), 4) != "\177ELF") return 0;
  return static_cast<uint16_t>(static_cast<uint8_t>(header[kMachineAt]) |
                               static_cast<uint8_t>(header[kMachineAt + 1]) << 8);
}

std::string abi_name(uint16_t machine) {
  for (const Machine& known : kMachines) {
    if (known.number == machine) return known.abi;
  }
  return fmt::format("machine {}", machine);
}

}  // namespace

std::string installed_phone_agent(const std::string& abi) {
  return fmt::format("{}/../lib/collectord/android/{}/libcollect_agent.so", own_directory(), abi);
}

Result<std::string> find_phone_agent(const std::string& abi, const std::string& given) {
  const std::string path = given.empty() ? installed_phone_agent(abi) : given;
  const uint16_t machine = machine_of(path);
  if (machine == 0) {
    if (given.empty()) {
      return Error{Code::kNotFound,
                   fmt::format("there is no agent for {}: install collectord-agent-android, or "
                               "build it (deploy/agents.sh android, with Android's NDK) and name "
                               "it by --agent FILE, or put it at {}",
                               abi, path)};
    }
    return Error{
        Code::kNotFound,
        fmt::format("{} is no library; --agent names libcollect_agent.so of {}", path, abi)};
  }
  if (abi_name(machine) == abi) return path;
  return Error{
      Code::kUnsupported,
      fmt::format("{} is for {}, and the app runs as {}: name the agent for that by --agent FILE",
                  path, abi_name(machine), abi)};
}

}  // namespace collect::ctl
