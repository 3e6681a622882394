#include "daemon/ctl/look/top_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/lower_case.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {

namespace api = control::v1;

namespace {

constexpr size_t kMaxFilterBytes = 100;
constexpr char kBackspace = '\x7f';
constexpr char kEscape = '\x1b';
constexpr char kEndOfText = '\x03';  // Ctrl-C

bool has(const std::string& text, const std::string& part) {
  return part.empty() || lower_case(text).find(lower_case(part)) != std::string::npos;
}

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

uint64_t cpu_self_ns(const api::FunctionActivity& function) {
  return function.has_cpu_self_ns() ? function.cpu_self_ns() : function.self_ns();
}

uint64_t value(const api::FunctionActivity& function, TopSort sort) {
  switch (sort) {
    case TopSort::kCpu:
      return cpu_self_ns(function);
    case TopSort::kSelf:
      return function.self_ns();
    case TopSort::kTotal:
      return function.total_ns();
    case TopSort::kCalls:
      return function.calls();
    case TopSort::kLongest:
      return function.longest_ns();
  }
  return 0;
}

const char* word(TopSort sort) {
  constexpr const char* kSortWords[] = {"CPU", "self", "total", "calls", "longest"};
  return kSortWords[static_cast<size_t>(sort)];
}

void add_shown_text(std::vector<std::string>& lines, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

}  // namespace

bool TopView::press(char key) {
  if (is_typing) {
    if (key == kEndOfText) return false;
    if (key == '\r' || key == '\n') {
      is_typing = false;
    } else if (key == kEscape) {
      is_typing = false;
      filter.clear();
    } else if (key == kBackspace || key == '\b') {
      if (!filter.empty()) filter.pop_back();
    } else if (static_cast<unsigned char>(key) >= ' ' && filter.size() < kMaxFilterBytes) {
      filter += key;
    }
    return true;
  }
  switch (key) {
    case 'q':
    case kEndOfText:
      return false;
    case 'u':
      sort = TopSort::kCpu;
      break;
    case 's':
      sort = TopSort::kSelf;
      break;
    case 't':
      sort = TopSort::kTotal;
      break;
    case 'c':
      sort = TopSort::kCalls;
      break;
    case 'l':
      sort = TopSort::kLongest;
      break;
    case 'h':
      shows_threads = !shows_threads;
      break;
    case 'p':
    case ' ':
      is_paused = !is_paused;
      break;
    case '/':
      is_typing = true;
      filter.clear();
      break;
    case kEscape:
      filter.clear();
      break;
    default:
      break;
  }
  return true;
}

void TopView::add_head(std::vector<std::string>& lines, size_t columns) const {
  const double over = seconds > 0 ? seconds : 1;
  const auto rate = [&](uint64_t count) { return short_rate(static_cast<double>(count) / over); };
  const auto add = [&](const std::string& line) { lines.push_back(cut_to(line, columns)); };
  add(fmt::format("{} ({}){}  {}  {}  {}{}", printable(session.process_name()), session.pid(),
                  session.device_id().empty() ? "" : " on " + printable(session.device_id()),
                  short_name(session.name()), state_word(session.state()),
                  short_duration(session_seconds(session)), is_paused ? "  PAUSED" : ""));
  add(fmt::format(
      "events {}, {} stored; {}/s, {}; {}; detail {}{}", rate(batch.events()),
      with_thousands(session.events()), short_bytes(static_cast<uint64_t>(stored_bytes_per_second)),
      short_bytes(session.stored_bytes() + session.container_bytes()),
      counted(session.threads(), "thread"), mode_word(session.detail()),
      session.detail_records() == 0 ? "" : ", " + with_thousands(session.detail_records())));
  add(fmt::format(
      "lost {} ({}); stalled {} in {}; behind: {} unread, {} skipped{}", loss_count(session),
      rate(batch.lost_events()), short_duration(static_cast<double>(session.stalled_ns()) / 1e9),
      counted(session.stall_count(), "stall"), with_thousands(batch.unread_events()),
      with_thousands(batch.skipped_events()),
      spooled_bytes == 0 ? ""
                         : fmt::format(", {} in the agent's spool", short_bytes(spooled_bytes))));
}

std::string TopView::function_table(size_t columns) const {
  std::vector<const api::FunctionActivity*> functions;
  for (const api::FunctionActivity& one : batch.functions()) {
    if (has(one.function(), filter)) functions.push_back(&one);
  }
  std::stable_sort(functions.begin(), functions.end(), [this](const auto* a, const auto* b) {
    return value(*a, sort) > value(*b, sort);
  });
  const double over = seconds > 0 ? seconds : 1;
  std::vector<std::string> heads = {"SELF", "TOTAL", "CALLS/s", "LONGEST", "FUNCTION"};
  const bool has_cpu = batch.has_switches();
  heads.insert(heads.begin(), has_cpu ? "CPU %" : "SELF %");
  if (has_cpu) heads.insert(heads.begin() + 1, "CPU");
  Table table(heads);
  for (size_t column = 0; column + 1 < heads.size(); ++column) table.right(column);
  for (const api::FunctionActivity* one : functions) {
    std::vector<std::string> row = {duration_text(one->self_ns()), duration_text(one->total_ns()),
                                    short_rate(static_cast<double>(one->calls()) / over),
                                    duration_text(one->longest_ns()), printable(one->function())};
    row.insert(row.begin(), percent(static_cast<double>(cpu_self_ns(*one)) / 1e9, over));
    if (has_cpu) row.insert(row.begin() + 1, duration_text(cpu_self_ns(*one)));
    table.add(std::move(row));
  }
  return table.text(columns);
}

std::string TopView::thread_table(size_t columns) const {
  const double over = seconds > 0 ? seconds : 1;
  Table table({"TID", "EVENTS/s", "DEPTH", "THREAD", "IN FUNCTION"});
  for (size_t column : {0, 1, 2}) table.right(column);
  for (const api::ThreadActivity& one : batch.threads()) {
    if (!has(one.name(), filter) && !has(one.function(), filter)) continue;
    table.add({std::to_string(one.thread_id()),
               short_rate(static_cast<double>(one.events()) / over), std::to_string(one.depth()),
               printable(one.name()), printable(one.function())});
  }
  return table.text(columns);
}

std::vector<std::string> TopView::lines(size_t columns, size_t rows) const {
  std::vector<std::string> lines;
  add_head(lines, columns);
  lines.emplace_back();
  if (rows == 0) {
    add_shown_text(lines, shows_threads ? thread_table(columns) : function_table(columns));
    lines.emplace_back();
    add_shown_text(lines, shows_threads ? function_table(columns) : thread_table(columns));
    return lines;
  }
  add_shown_text(lines, shows_threads ? thread_table(columns) : function_table(columns));
  const size_t room = rows > 1 ? rows - 1 : 1;
  lines.resize(room);
  // What is shown comes before the keys, which a narrow terminal cuts.
  const std::string state = fmt::format(
      "by {}{}", word(sort), filter.empty() ? "" : fmt::format(", with \"{}\"", printable(filter)));
  lines.push_back(cut_to(
      is_typing ? fmt::format("filter: {}_   (Enter keeps it, Esc ends it)", printable(filter))
                : state + "   q quit  u CPU  s self  t total  c calls  l longest  h threads  "
                          "/ filter  p pause",
      columns));
  return lines;
}

}  // namespace collect::ctl
