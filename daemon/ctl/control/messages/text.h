// How states and lists look to people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "formats/core/result.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/printable.h"
#include "storage/select/time_words.h"

namespace collect::ctl {

// "recording", "sealed": the words of the terminal.
std::string state_word(control::v1::AgentState state);
std::string state_word(control::v1::SessionState state);
std::string state_word(control::v1::DeviceState state);
std::string mode_word(control::v1::DetailMode mode);
std::string event_word(control::v1::ChangeKind kind);  // of devices too
std::string event_word(control::v1::Trigger::Event event);
bool is_sealed(const control::v1::Session& session);
// Sealed, and not all of it is there: storing failed, or the end of the recording never came.
bool is_incomplete(const control::v1::Session& session);
// Events, and detail records where there are any: "12", "12, 3 detail"; "12+?" or "?" where no one
// knows how many more.
std::string loss_count(const control::v1::Session& session);

// From start to end, or to now while it records; negative clocks count as 0.
double session_seconds(const control::v1::Session& session);

// "14:03:05.250", in the reader's time zone.
std::string time_of_day(std::chrono::system_clock::time_point when);

// The name without "agents/" or "sessions/", printable.
std::string short_name(std::string_view name);

// One word as a shell takes it, in quotation marks where it needs them.
std::string shell_word(const std::string& text);

inline constexpr uint64_t kMaxSize = uint64_t{1} << 60;
// Bytes: "4096", "512K", "10M", "2G"; powers of 1024.
Result<uint64_t> parse_size(std::string_view text);

// Columns wide enough for their widest cell; the last is never padded. Numeric columns align right.
// Where a line is longer than the terminal, the widest columns behind the first are cut, with … in
// the cells, and then the line.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void right(size_t column) { right_.push_back(column); }
  // Any text stays in its cell: it goes through printable_sentence.
  void add(std::vector<std::string> row);
  std::string text(size_t columns = 0) const;  // of the terminal; 0: it is none, nothing is cut

 private:
  static constexpr size_t kLeastWidth = 8;  // no column is cut further
  std::vector<size_t> widths(size_t columns) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> right_;
};

}  // namespace collect::ctl
