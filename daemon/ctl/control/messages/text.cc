#include "daemon/ctl/control/messages/text.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;

double seconds_of(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + time.nanos() / 1e9;
}

// The words of the dialect, as several words where they are.
std::string word_of(const google::protobuf::EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  if (value == nullptr || number == 0) return "unknown";
  std::string word = enum_word(*value);
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

}  // namespace

std::string state_word(api::AgentState state) {
  return word_of(*api::AgentState_descriptor(), state);
}

std::string state_word(api::SessionState state) {
  return word_of(*api::SessionState_descriptor(), state);
}

std::string state_word(api::DeviceState state) {
  return word_of(*api::DeviceState_descriptor(), state);
}

std::string mode_word(api::DetailMode mode) {
  return mode == api::DETAIL_MODE_UNSPECIFIED ? "off"
                                              : word_of(*api::DetailMode_descriptor(), mode);
}

std::string event_word(api::ChangeKind kind) {
  return word_of(*api::ChangeKind_descriptor(), kind);
}

std::string event_word(api::Trigger::Event event) {
  return event == api::Trigger::EVENT_UNSPECIFIED
             ? "call"
             : word_of(*api::Trigger::Event_descriptor(), event);
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
    text += fmt::format(", {} detail", with_thousands(session.lost_detail_records()));
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

std::string time_of_day(std::chrono::system_clock::time_point when) {
  const time_t seconds = std::chrono::system_clock::to_time_t(when);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch());
  tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>(since.count() % 1000));
  return text;
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
                 fmt::format("\"{}\" is no size; write 4096, 512K, 10M or 2G", text)};
  }
  return number << shift;
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable_sentence(cell);
  rows_.push_back(std::move(row));
}

std::vector<size_t> Table::widths(size_t columns) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  if (columns == 0 || widths.empty()) return widths;
  size_t all = 2 * (widths.size() - 1);
  for (const size_t width : widths) all += width;
  // The first column has the names that people copy.
  for (; all > columns && widths.size() > 1; --all) {
    const auto widest = std::max_element(widths.begin() + 1, widths.end());
    if (*widest <= kLeastWidth) break;
    --*widest;
  }
  return widths;
}

std::string Table::text(size_t columns) const {
  const std::vector<size_t> widths = this->widths(columns);
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string cell = cut_to(row[i], widths[i]);
      const std::string padding(widths[i] - columns_of(cell), ' ');
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      if (i != 0) line += "  ";
      line += right ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += cut_to(line, columns) + "\n";
  }
  return text;
}

}  // namespace collect::ctl
