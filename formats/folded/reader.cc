#include "formats/folded/reader.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/core/text/decimal.h"
#include "formats/core/timeline/timeline_stack.h"

namespace collect::folded {
namespace {

constexpr uint64_t kProgressLines = 4096;

struct Line {
  std::string_view stack;
  uint64_t weight = 0;
};

// Takes the first line off `text`, without its end.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<Line> parse(std::string_view line) {
  while (line.ends_with(' ')) line.remove_suffix(1);
  const size_t blank = line.rfind(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto weight = scaled_decimal(line.substr(blank + 1), 0);
  std::string_view stack = line.substr(0, blank);
  while (stack.ends_with(' ')) stack.remove_suffix(1);
  if (stack.empty() || !weight || *weight < 0) return std::nullopt;
  return Line{stack, static_cast<uint64_t>(*weight)};
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_control(char c) {
  return static_cast<uint8_t>(c) < 0x20 && c != '\t';
}

}  // namespace

bool looks_like_folded(Bytes file) {
  std::string_view text = text_of(file.first(std::min(file.size(), kSniffBytes)));
  if (text.size() < file.size()) {  // the last line is not whole
    const size_t end = text.rfind('\n');
    if (end == std::string_view::npos) return false;
    text = text.substr(0, end);
  }
  if (text.starts_with('{')) return false;  // JSON that is cut off
  size_t stacks = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) continue;
    if (!parse(line) || std::any_of(line.begin(), line.end(), is_control)) return false;
    ++stacks;
  }
  return stacks != 0;
}

Status read_stacks(Bytes file, TimelineSink& sink) {
  const uint32_t process = sink.add_process(0);
  const uint32_t track = sink.add_track();
  sink.place_track(track, process, 0);
  sink.name_track(track, "stacks");
  TimelineStack calls(sink, track, 0);
  std::string_view text = text_of(file);
  std::vector<uint32_t> stack;
  uint64_t lines = 0;
  while (!text.empty()) {
    const auto line = parse(take_line(text));
    if (!line) {
      sink.leave_out("lines that are no stack with a weight");
      continue;
    }
    stack.clear();
    for (std::string_view rest = line->stack; !rest.empty();) {
      const size_t end = std::min(rest.find(';'), rest.size());
      if (stack.size() < kMaxStackFrames) {
        stack.push_back(sink.function(rest.substr(0, end)));
      } else {
        sink.leave_out("frames of stacks deeper than is followed");
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    COLLECT_TRY(calls.last(stack, line->weight));
    if (++lines % kProgressLines == 0) sink.progress(file.size() - text.size());
  }
  if (lines == 0) return Error{Code::kDamaged, "no line is a stack with a weight"};
  sink.remark(
      "folded stacks have no times: they are laid out one after another, each as many nanoseconds "
      "long as its weight says; a frame that stacks in a row share is one call");
  return calls.finish();
}

}  // namespace collect::folded
