#include "daemon/ctl/report/tui_request.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

namespace collect::ctl {
namespace {

bool take_sort(std::string_view text, ReportSort& sort) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      number > static_cast<unsigned>(ReportSort::kLongest)) {
    return false;
  }
  sort = static_cast<ReportSort>(number);
  return true;
}

bool take(std::string_view name, std::string_view value, ReportOptions& options) {
  if (name == "path") {
    options.path = value;
  } else if (name == "sort") {
    return take_sort(value, options.sort);
  } else if (name == "wall") {
    options.wall = value == "1";
  } else if (name == "color") {
    options.color = value == "1";
  } else if (name == "from") {
    options.when.from = value;
  } else if (name == "until") {
    options.when.until = value;
  } else if (name == "thread") {
    options.threads.emplace_back(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> tui_arguments(const ReportOptions& options) {
  std::vector<std::string> words = {"path=" + options.path,
                                    fmt::format("sort={}", static_cast<unsigned>(options.sort)),
                                    options.wall ? "wall=1" : "wall=0",
                                    options.color ? "color=1" : "color=0",
                                    "from=" + options.when.from,
                                    "until=" + options.when.until};
  for (const std::string& thread : options.threads) words.push_back("thread=" + thread);
  return words;
}

Result<ReportOptions> parse_tui_arguments(const std::vector<std::string>& arguments) {
  ReportOptions options;
  for (const std::string& word : arguments) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || !take(std::string_view(word).substr(0, equals),
                                             std::string_view(word).substr(equals + 1), options)) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("unknown word: {}; collectctl report --tui starts this program", word)};
    }
  }
  if (options.path.empty()) return Error{Code::kInvalidArgument, "started without a path"};
  return options;
}

}  // namespace collect::ctl
