#include "daemon/ctl/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace collect::ctl {
namespace {

namespace api = control::v1;

double seconds_of(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + time.nanos() / 1e9;
}

// Columns, not bytes: continuation bytes of UTF-8 take no room.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string_view state_word(api::AgentState state) {
  switch (state) {
    case api::AGENT_STATE_DIALING:
      return "dialling";
    case api::AGENT_STATE_CONNECTED:
      return "idle";
    case api::AGENT_STATE_RECORDING:
      return "recording";
    case api::AGENT_STATE_DISCONNECTED:
      return "disconnected";
    case api::AGENT_STATE_GONE:
      return "gone";
    default:
      return "unknown";
  }
}

std::string_view state_word(api::SessionState state) {
  switch (state) {
    case api::SESSION_STATE_ACTIVE:
      return "recording";
    case api::SESSION_STATE_INTERRUPTED:
      return "interrupted";
    case api::SESSION_STATE_SEALING:
      return "sealing";
    case api::SESSION_STATE_COMPLETE:
      return "complete";
    case api::SESSION_STATE_RECOVERED:
      return "recovered";
    case api::SESSION_STATE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string_view state_word(api::DeviceState state) {
  switch (state) {
    case api::DEVICE_STATE_SERVING:
      return "serving";
    case api::DEVICE_STATE_NO_AGENT:
      return "no agent";
    case api::DEVICE_STATE_BLOCKED:
      return "blocked";
    case api::DEVICE_STATE_ABSENT:
      return "absent";
    default:
      return "unknown";
  }
}

std::string_view mode_word(api::DetailMode mode) {
  switch (mode) {
    case api::DETAIL_MODE_ARMED:
      return "armed";
    case api::DETAIL_MODE_ON:
      return "on";
    default:
      return "off";
  }
}

std::string_view event_word(api::ChangeKind kind) {
  switch (kind) {
    case api::CHANGE_KIND_PRESENT:
      return "present";
    case api::CHANGE_KIND_ADDED:
      return "added";
    case api::CHANGE_KIND_CHANGED:
      return "changed";
    case api::CHANGE_KIND_REMOVED:
      return "removed";
    default:
      return "unknown";
  }
}

bool is_sealed(const api::Session& session) {
  return session.state() == api::SESSION_STATE_COMPLETE ||
         session.state() == api::SESSION_STATE_RECOVERED ||
         session.state() == api::SESSION_STATE_FAILED;
}

bool is_incomplete(const api::Session& session) {
  return is_sealed(session) && session.state() != api::SESSION_STATE_COMPLETE;
}

std::string loss_count(const api::Session& session) {
  const uint64_t lost = session.lost_events();
  std::string text = with_thousands(lost);
  if (is_sealed(session) && !session.losses_known()) text = lost == 0 ? "?" : text + "+?";
  if (session.lost_detail_records() != 0) {
    text += ", " + with_thousands(session.lost_detail_records()) + " detail";
  }
  return text;
}

double session_seconds(const api::Session& session) {
  if (!session.has_start_time()) return 0;
  const double end =
      session.has_end_time()
          ? seconds_of(session.end_time())
          : std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                .count();
  return std::max(0.0, end - seconds_of(session.start_time()));
}

std::string short_name(std::string_view name) {
  for (std::string_view prefix : {"agents/", "sessions/"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return printable(name);
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  std::string_view digits = text;
  unsigned shift = 0;
  if (const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
      unit != kUnits.npos) {
    digits.remove_suffix(1);
    shift = 10 * static_cast<unsigned>(unit + 1);
  }
  uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || number == 0 ||
      number > (kMaxSize >> shift)) {
    return Error{Code::kInvalidArgument,
                 "\"" + std::string(text) + "\" is no size; write 4096, 512K, 10M or 2G"};
  }
  return number << shift;
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable_sentence(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns(row[i]), ' ');
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      if (i != 0) line += "  ";
      line += right ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace collect::ctl
