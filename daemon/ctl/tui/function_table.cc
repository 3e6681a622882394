#include "daemon/ctl/tui/function_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "formats/core/text/figures.h"

namespace collect::ctl::tui {
namespace {

constexpr size_t kLeastColumns = 4;       // that are always there
constexpr size_t kLeastNameColumns = 32;  // before there are more

}  // namespace

std::string whole_name(const ReportRow& row) {
  std::string name = printable(row.name);
  if (!row.source.file.empty()) {
    name += fmt::format("  {}:{}", printable(row.source.file), row.source.line);
  }
  return name;
}

FunctionTable::FunctionTable(const Capture& capture, ReportSort sort)
    : capture_(capture), rows_(capture.functions().rows) {
  const bool has_cpu = capture.functions().cpu_ns.has_value();
  if (sort == ReportSort::kAuto || (sort == ReportSort::kCpu && !has_cpu)) {
    sort = has_cpu ? ReportSort::kCpu : ReportSort::kTotal;
  }
  sort_by(sort);
}

void FunctionTable::sort_by(ReportSort sort) {
  sort_ = sort;
  sort_rows(rows_, sort);
  choose(0);
}

std::vector<FunctionTable::Column> FunctionTable::all_columns() const {
  std::vector<Column> columns;
  if (capture_.functions().cpu_ns) columns.push_back({ReportSort::kCpu, "SELF CPU", kTimeColumns});
  columns.insert(columns.end(), {{ReportSort::kSelf, "SELF", kTimeColumns},
                                 {ReportSort::kTotal, "TOTAL", kTimeColumns},
                                 {ReportSort::kCalls, "CALLS", kCallsColumns},
                                 {ReportSort::kAverage, "AVERAGE", kTimeColumns},
                                 {ReportSort::kP99, "P99", kTimeColumns},
                                 {ReportSort::kLongest, "LONGEST", kTimeColumns}});
  return columns;
}

std::vector<FunctionTable::Column> FunctionTable::columns_in(size_t columns) const {
  const std::vector<Column> all = all_columns();
  const ReportSort first = all.front().sort;
  constexpr std::array kOrder = {ReportSort::kTotal,   ReportSort::kCalls, ReportSort::kSelf,
                                 ReportSort::kAverage, ReportSort::kP99,   ReportSort::kLongest};
  std::vector<ReportSort> wanted = {sort_, first};
  wanted.insert(wanted.end(), kOrder.begin(), kOrder.end());
  size_t used = kShareColumns + 1;
  std::vector<ReportSort> chosen;
  for (const ReportSort sort : wanted) {
    const auto column = std::ranges::find(all, sort, &Column::sort);
    if (column == all.end() || std::ranges::find(chosen, sort) != chosen.end()) continue;
    const bool is_always = chosen.size() + 1 < kLeastColumns;
    if (!is_always && used + column->width + kLeastNameColumns > columns) break;
    used += column->width;
    chosen.push_back(sort);
  }
  std::vector<Column> shown;
  for (const Column& column : all) {
    if (std::ranges::find(chosen, column.sort) != chosen.end()) shown.push_back(column);
  }
  return shown;
}

ReportSort FunctionTable::share_sort() const {
  if (sort_ == ReportSort::kTotal || sort_ == ReportSort::kSelf) return sort_;
  return capture_.functions().cpu_ns ? ReportSort::kCpu : ReportSort::kSelf;
}

std::string FunctionTable::title() const {
  return fmt::format("Functions: {}", with_thousands(rows_.size()));
}

std::string FunctionTable::keys() const {
  return "q:quit  ?:keys  Enter:open  c:calls  g:graph  t:thread  <>:sort  /:search";
}

std::string FunctionTable::heading(size_t columns) const {
  TextBuffer out;
  const ReportSort share = share_sort();
  put_right(out,
            share == ReportSort::kCpu    ? "%CPU"
            : share == ReportSort::kSelf ? "%SELF"
                                         : "%TOTAL",
            kShareColumns);
  for (const Column& column : columns_in(columns)) {
    const bool is_sorted = column.sort == sort_;
    put_right(out, fmt::format("{}{}", is_sorted ? "*" : "", column.heading), column.width);
  }
  out.put(sort_ == ReportSort::kName ? "  *FUNCTION" : "  FUNCTION");
  return std::string(out.text());
}

void FunctionTable::put_cell(TextBuffer& out, const ReportRow& row, const Column& column) const {
  const auto put_known = [&](std::optional<uint64_t> ns) {
    if (ns) {
      put_duration(out, *ns);
    } else {
      put_right(out, "-", column.width);
    }
  };
  switch (column.sort) {
    case ReportSort::kCpu:
      return put_duration(out, cpu_self_ns(row.times));
    case ReportSort::kSelf:
      return put_duration(out, row.times.self_ns);
    case ReportSort::kCalls:
      return put_calls(out, row.times.calls);
    case ReportSort::kAverage:
      return put_duration(out, average_ns(row.times));
    case ReportSort::kP99:
      return put_known(row.durations ? std::optional(row.durations->p99_ns) : std::nullopt);
    case ReportSort::kLongest:
      return put_known(row.durations ? std::optional(row.durations->longest_ns) : std::nullopt);
    case ReportSort::kAuto:
    case ReportSort::kName:
    case ReportSort::kTotal:
      return put_duration(out, row.times.total_ns);
  }
}

std::string FunctionTable::line(size_t row, size_t columns) const {
  const ReportRow& function = rows_[row];
  const ReportProfile& profile = capture_.functions();
  TextBuffer out;
  switch (share_sort()) {
    case ReportSort::kCpu:
      put_share(out, cpu_self_ns(function.times), profile.cpu_ns.value_or(0));
      break;
    case ReportSort::kSelf:
      put_share(out, function.times.self_ns, profile.counts.running_ns);
      break;
    default:
      put_share(out, function.times.total_ns, profile.counts.running_ns);
  }
  size_t used = kShareColumns + 2;
  for (const Column& column : columns_in(columns)) {
    put_cell(out, function, column);
    used += column.width;
  }
  out.put("  ");
  out.put(short_name(printable(function.name), columns > used ? columns - used : 0));
  return std::string(out.text());
}

std::optional<uint64_t> FunctionTable::function() const {
  if (rows_.empty()) return std::nullopt;
  return rows_[chosen()].id;
}

Page::Target FunctionTable::enter() {
  const auto id = function();
  if (!id) return {};
  return {Target::Kind::kFunction, *id};
}

bool FunctionTable::press(const KeyPress& key) {
  if (key.text != "<" && key.text != ">") return false;
  std::vector<ReportSort> order;
  for (const Column& column : all_columns()) order.push_back(column.sort);
  order.push_back(ReportSort::kName);
  const auto now = static_cast<size_t>(std::ranges::find(order, sort_) - order.begin());
  const size_t step = key.text == ">" ? 1 : order.size() - 1;
  sort_by(order[(now + step) % order.size()]);
  return true;
}

}  // namespace collect::ctl::tui
