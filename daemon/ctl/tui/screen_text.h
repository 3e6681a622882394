// What `report --tui` shows, as lines without a terminal, and the keys that it is sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl::tui {

enum class Style : uint8_t { kPlain, kTitle, kHeading, kSection, kChosen, kName, kFoot, kMessage };

struct Line {
  std::string text;  // printable; no more than the columns of the screen
  Style style = Style::kPlain;
};

enum class Key : uint8_t {
  kText,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kBackspace,
  kEscape
};

struct KeyPress {
  Key key = Key::kText;
  std::string text{};  // of kText: one character
};

// A text that is searched for: in any case, unless it has capital letters.
class SearchText {
 public:
  explicit SearchText(std::string text);

  bool is_in(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool is_exact_ = false;
};

// A printable name in so many columns. What says least goes first: parameters, then arguments of
// templates, then the start.
std::string short_name(std::string_view name, size_t columns);

// The text in `count` lines; what does not fit is cut.
std::vector<std::string> wrapped(std::string_view text, size_t columns, size_t count);

// Cells of tables, right-aligned, with a space before each.
constexpr size_t kTimeColumns = 13;
constexpr size_t kCallsColumns = 12;
constexpr size_t kShareColumns = 7;
void put_calls(TextBuffer& out, uint64_t calls);
void put_share(TextBuffer& out, uint64_t part, uint64_t whole);
void put_duration(TextBuffer& out, uint64_t ns);
void put_right(TextBuffer& out, std::string_view text, size_t columns);
std::string time_text(uint64_t ns);  // "12.345 ms"

}  // namespace collect::ctl::tui
