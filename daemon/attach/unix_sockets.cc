#include "daemon/attach/unix_sockets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace collect::attach {
namespace {

// "0000000000000000: 00000002 00000000 00010000 0001 01 12345 @collect_agent_4711"
enum Column : size_t { kSlot, kReferences, kProtocol, kFlags, kType, kState, kInode, kPath };
constexpr size_t kColumns = 8;
constexpr uint32_t kAcceptsConnections = 0x10000;  // __SO_ACCEPTCON of the kernel
constexpr uint32_t kStream = 1;                    // SOCK_STREAM
constexpr size_t kMaxPidDigits = 10;

std::array<std::string_view, kColumns> columns_of(std::string_view line) {
  std::array<std::string_view, kColumns> columns;
  for (size_t column = 0; column < kColumns; ++column) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    // The path is the rest of the line: names may contain spaces.
    const size_t end = column == kPath ? line.size() : std::min(line.find(' '), line.size());
    columns[column] = line.substr(0, end);
    line.remove_prefix(end);
  }
  return columns;
}

bool parse_hex(std::string_view digits, uint32_t& value) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return error == std::errc() && stop == end && !digits.empty();
}

bool is_agent(std::string_view path) {
  constexpr std::string_view prefix = kAgentSocketPrefix;
  if (!path.starts_with('@') || !path.substr(1).starts_with(prefix)) return false;
  const std::string_view pid = path.substr(1 + prefix.size());
  return !pid.empty() && pid.size() <= kMaxPidDigits &&
         std::all_of(pid.begin(), pid.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_listening_agent(std::string_view line, std::string_view& name) {
  const auto columns = columns_of(line);
  uint32_t flags = 0;
  uint32_t type = 0;
  if (!parse_hex(columns[kFlags], flags) || (flags & kAcceptsConnections) == 0) return false;
  if (!parse_hex(columns[kType], type) || type != kStream || !is_agent(columns[kPath]))
    return false;
  name = columns[kPath].substr(1);
  return true;
}

}  // namespace

ListeningAgents parse_listening_agents(std::string_view text) {
  ListeningAgents found;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // a shell with a terminal in between
    std::string_view name;
    if (is_listening_agent(line, name)) found.names.emplace_back(name);
  }
  std::sort(found.names.begin(), found.names.end());
  found.names.erase(std::unique(found.names.begin(), found.names.end()), found.names.end());
  if (found.names.size() > kMaxAgentsPerDevice) {
    found.left_out = found.names.size() - kMaxAgentsPerDevice;
    found.names.resize(kMaxAgentsPerDevice);
  }
  return found;
}

}  // namespace collect::attach
