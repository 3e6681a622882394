#include "daemon/ctl/tui/screen_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/core/text/figures.h"

namespace collect::ctl::tui {
namespace {

constexpr std::string_view kLeftOut = "…";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Where the bracket is closed that the text has at `open`; npos: nowhere.
size_t end_of(std::string_view text, size_t open, char opening, char closing) {
  size_t depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == opening) ++depth;
    if (text[at] == closing && --depth == 0) return at;
  }
  return std::string_view::npos;
}

// "f(int, char) const" becomes "f(…) const".
std::string without_parameters(std::string_view name) {
  const size_t close = name.rfind(')');
  if (close == std::string_view::npos) return std::string(name);
  size_t depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] != '(' || --depth != 0) continue;
    if (at == 0 || close - at < 2) break;
    std::string text(name.substr(0, at + 1));
    text += kLeftOut;
    text += name.substr(close);
    return text;
  }
  return std::string(name);
}

// "a<int>::f<b<c>>" becomes "a<…>::f<…>".
std::string without_arguments(std::string_view name) {
  std::string text;
  for (size_t at = 0; at < name.size(); ++at) {
    text += name[at];
    if (name[at] != '<' || text.ends_with("operator<")) continue;
    const size_t close = end_of(name, at, '<', '>');
    if (close == std::string_view::npos) {
      text += name.substr(at + 1);
      break;
    }
    text += kLeftOut;
    at = close - 1;
  }
  return text;
}

size_t bytes_of_character(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

SearchText::SearchText(std::string text) : text_(std::move(text)) {
  is_exact_ = std::ranges::any_of(text_, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool SearchText::is_in(std::string_view name) const {
  if (is_exact_) return name.find(text_) != std::string_view::npos;
  return !std::ranges::search(name, text_, {}, lower).empty() || text_.empty();
}

std::string short_name(std::string_view name, size_t columns) {
  if (columns_of(name) <= columns) return std::string(name);
  std::string text = without_parameters(name);
  if (columns_of(text) > columns) text = without_arguments(text);
  constexpr std::string_view kNoParameters = "(…)";
  if (columns_of(text) > columns && text.ends_with(kNoParameters)) {
    text.resize(text.size() - kNoParameters.size());
  }
  return columns == 0 ? std::string() : cut_to_end(text, columns);
}

std::vector<std::string> wrapped(std::string_view text, size_t columns, size_t count) {
  std::vector<std::string> lines;
  while (lines.size() + 1 < count && columns != 0 && columns_of(text) > columns) {
    size_t bytes = 0;
    for (size_t column = 0; column < columns && bytes < text.size(); ++column) {
      bytes += bytes_of_character(static_cast<unsigned char>(text[bytes]));
    }
    bytes = std::min(bytes, text.size());
    lines.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  if (count != 0) lines.push_back(cut_to(text, columns));
  lines.resize(count);
  return lines;
}

void put_right(TextBuffer& out, std::string_view text, size_t columns) {
  const size_t used = columns_of(text);
  out.repeat(' ', used < columns ? columns - used : 0);
  out.put(text);
}

void put_calls(TextBuffer& out, uint64_t calls) {
  put_right(out, " " + with_thousands(calls), kCallsColumns);
}

void put_share(TextBuffer& out, uint64_t part, uint64_t whole) {
  put_percent_cell(out, part, whole, kShareColumns);
}

void put_duration(TextBuffer& out, uint64_t ns) {
  out.put(' ');
  put_time_cell(out, ns);
}

std::string time_text(uint64_t ns) {
  TextBuffer out;
  put_time(out, ns, 0);
  return std::string(out.text());
}

}  // namespace collect::ctl::tui
