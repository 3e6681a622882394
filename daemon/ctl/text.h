// How numbers, states and lists look to people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "proto/control/v1/control.pb.h"

namespace collect::ctl {

std::string with_thousands(uint64_t number);  // "12,345,678"
std::string short_bytes(uint64_t bytes);      // "1.5 GB", decimal as disks and links count
std::string short_rate(double per_second);    // "12.3 M/s"
std::string short_duration(double seconds);   // "850 ms", "12.3 s", "2 h 05 min"

// "recording", "sealed": the words of the terminal.
std::string_view state_word(control::v1::AgentState state);
std::string_view state_word(control::v1::SessionState state);
std::string_view mode_word(control::v1::DetailMode mode);
bool is_sealed(const control::v1::Session& session);

// From start to end, or to now while it records; negative clocks count as 0.
double session_seconds(const control::v1::Session& session);

// The name without "agents/" or "sessions/".
std::string short_name(std::string_view name);

// A peer's text on our terminal: control characters become '?', so that it cannot move the cursor.
std::string printable(std::string_view text);

// "5s", "200ms", "1.5m", "2h"; a bare number counts seconds.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Columns wide enough for their widest cell; the last is never padded. Numeric columns align right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void right(size_t column) { right_.push_back(column); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> right_;
};

}  // namespace collect::ctl
