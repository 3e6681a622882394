#include "daemon/ctl/tui/function_page.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ctl/tui/function_table.h"
#include "formats/core/text/figures.h"

namespace collect::ctl::tui {
namespace {

constexpr char kItself[] = "(itself)";

std::string with_share(uint64_t part, uint64_t whole) {
  TextBuffer out;
  put_share(out, part, whole);
  return fmt::format("{}{} %", time_text(part), out.text());
}

}  // namespace

FunctionPage::FunctionPage(Capture& capture, const ReportRow& function) : function_(function) {
  add_figures(capture);
  add_neighbours("Callers, by their part of the total time", capture.callers_of(function.id));
  add_neighbours("Callees, and their part of the total time", {});
  add_itself();
  for (Neighbour& callee : capture.callees_of(function.id)) {
    rows_.push_back({{}, true, std::move(callee)});
  }
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (is_section(row)) continue;
    choose(row);
    break;
  }
}

// Two in a line, which fit into 60 columns.
void FunctionPage::add_figures(const Capture& capture) {
  const calls::GroupTimes& times = function_.times;
  const ReportProfile& profile = capture.functions();
  std::vector<std::pair<std::string, std::string>> figures = {
      {"Calls", with_thousands(times.calls)},
      {"Average", time_text(average_ns(times))},
      {"Total", with_share(times.total_ns, profile.counts.running_ns)},
      {"Self", with_share(times.self_ns, profile.counts.running_ns)}};
  if (profile.cpu_ns) {
    figures.emplace_back("Self CPU", with_share(cpu_self_ns(times), *profile.cpu_ns));
    figures.emplace_back("Waited", time_text(times.self_ns - cpu_self_ns(times)));
  }
  if (function_.durations) {
    const ReportPercentiles& took = *function_.durations;
    figures.insert(figures.end(), {{"Shortest", time_text(took.shortest_ns)},
                                   {"Longest", time_text(took.longest_ns)},
                                   {"p50", time_text(took.p50_ns)},
                                   {"p95", time_text(took.p95_ns)},
                                   {"p99", time_text(took.p99_ns)}});
  }
  const auto add = [&](const char* label, uint64_t count) {
    if (count != 0) figures.emplace_back(label, with_thousands(count));
  };
  add("Exceptions", function_.exceptions);
  add("Open", function_.open);
  add("No return", function_.skipped);
  add("Cut", function_.cut_by_gap + function_.cut_by_window);
  for (size_t i = 0; i < figures.size(); i += 2) {
    std::string text = fmt::format(" {:<10} {:<17}", figures[i].first, figures[i].second);
    if (i + 1 < figures.size()) {
      text += fmt::format("  {:<10} {}", figures[i + 1].first, figures[i + 1].second);
    }
    rows_.push_back({std::move(text), false, {}});
  }
}

void FunctionPage::add_neighbours(const std::string& section, std::vector<Neighbour> neighbours) {
  rows_.push_back({section, false, {}});
  for (Neighbour& one : neighbours) rows_.push_back({{}, true, std::move(one)});
}

void FunctionPage::add_itself() {
  calls::GroupTimes own;
  own.calls = function_.times.calls;
  own.total_ns = function_.times.self_ns;
  rows_.push_back({{}, true, {kItself, calls::FunctionSlots::kOther, own}});
}

std::string FunctionPage::title() const {
  return "Function";
}

std::string FunctionPage::keys() const {
  return "q:quit  ?:keys  Backspace:back  Enter:open  c:calls  g:graph  t:thread";
}

std::string FunctionPage::heading(size_t columns) const {
  return " " + short_name(printable(function_.name), columns > 1 ? columns - 1 : 0);
}

std::string FunctionPage::line(size_t row, size_t columns) const {
  const Row& shown = rows_[row];
  if (!shown.is_neighbour) return shown.text;
  TextBuffer out;
  put_share(out, shown.neighbour.times.total_ns, function_.times.total_ns);
  put_duration(out, shown.neighbour.times.total_ns);
  put_calls(out, shown.neighbour.times.calls);
  constexpr size_t kUsed = kShareColumns + kTimeColumns + kCallsColumns + 2;
  out.put("  ");
  out.put(short_name(printable(shown.neighbour.name), columns > kUsed ? columns - kUsed : 0));
  return std::string(out.text());
}

std::string FunctionPage::below(size_t row) const {
  if (!rows_[row].is_neighbour || rows_[row].neighbour.name == kItself) {
    return whole_name(function_);
  }
  return printable(rows_[row].neighbour.name);
}

Page::Target FunctionPage::enter() {
  const Row& row = rows_[chosen()];
  if (!row.is_neighbour || row.neighbour.function == calls::FunctionSlots::kOther) return {};
  return {Target::Kind::kFunction, row.neighbour.function};
}

}  // namespace collect::ctl::tui
