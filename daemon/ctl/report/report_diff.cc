#include "daemon/ctl/report/report_diff.h"

#include <algorithm>
#include <map>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

struct Change {
  std::string name;
  std::string caller;
  calls::GroupTimes before;
  calls::GroupTimes after;
};

uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

std::vector<Change> changes_of(const ReportProfile& before, const ReportProfile& after,
                               ReportSort sort) {
  std::map<std::pair<std::string, std::string>, Change> by_name;
  for (const auto& [profile, times] :
       {std::pair{&before, &Change::before}, std::pair{&after, &Change::after}}) {
    for (const ReportRow& row : profile->rows) {
      Change& change = by_name[{row.name, row.caller}];
      change.name = row.name;
      change.caller = row.caller;
      (change.*times).add(row.times);
    }
  }
  std::vector<Change> changes;
  for (auto& [name, change] : by_name) changes.push_back(std::move(change));
  const auto by = [&](auto value) {
    std::stable_sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
      return distance(a.before.*value, a.after.*value) > distance(b.before.*value, b.after.*value);
    });
  };
  switch (sort) {
    case ReportSort::kAuto:
    case ReportSort::kTotal:
      by(&calls::GroupTimes::total_ns);
      break;
    case ReportSort::kCpu:  // of two captures only wall times are compared
    case ReportSort::kSelf:
      by(&calls::GroupTimes::self_ns);
      break;
    case ReportSort::kAverage:  // columns of --tui
    case ReportSort::kP99:
    case ReportSort::kLongest:
    case ReportSort::kCalls:
      by(&calls::GroupTimes::calls);
      break;
    case ReportSort::kName:
      break;  // they are
  }
  return changes;
}

void put_calls_change(TextOut& out, const Change& change) {
  const uint64_t size = distance(change.before.calls, change.after.calls);
  TextBuffer number;
  if (size != 0) number.put(change.after.calls < change.before.calls ? '-' : '+');
  number.dec(size);
  out.repeat(' ', number.size() < 14 ? 14 - number.size() : 0);
  out.put(number.text());
}

void print_text(TextOut& out, const std::vector<Change>& changes, const ReportOptions& options) {
  if (options.color) out.control("\x1b[1m");
  constexpr std::string_view kHeading =
      "Total before   Total after        Change      %   Self before    Self after        Change"
      "  Calls change  ";
  out.put(kHeading);
  const size_t room = columns_left(options.columns, kHeading.size());
  out.put(rows_heading(options.by));
  if (options.color) out.control("\x1b[0m");
  out.put('\n');
  for (const Change& change : changes) {
    const auto times = [&](uint64_t before, uint64_t after) {
      put_time_cell(out, before);
      out.put("  ");
      put_time_cell(out, after);
      out.put(' ');
      put_change_cell(out, before, after);
    };
    times(change.before.total_ns, change.after.total_ns);
    put_percent_cell(out, distance(change.before.total_ns, change.after.total_ns),
                     change.before.total_ns, 7);
    out.put("  ");
    times(change.before.self_ns, change.after.self_ns);
    put_calls_change(out, change);
    out.put("  ");
    ReportRow row;
    row.name = change.name;
    row.caller = change.caller;
    put_row_name(out, row, options.by == ReportBy::kThread ? ReportBy::kModule : options.by, false,
                 room);
    out.put('\n');
  }
}

Json json_of(const Change& change, ReportBy by) {
  Json json{{"name", change.name}};
  if (by == ReportBy::kCaller) json["caller"] = change.caller;
  add_times(json["before"], change.before);
  add_times(json["after"], change.after);
  return json;
}

}  // namespace

void print_report_diff(TextOut& out, const ReportedCapture& before, const ReportProfile& one,
                       const ReportedCapture& after, const ReportProfile& other,
                       const ReportOptions& options) {
  std::vector<Change> changes = changes_of(one, other, options.sort);
  if (changes.size() > options.limit) changes.resize(options.limit);
  if (!options.json) {
    print_text(out, changes, options);
    for (const auto& [title, capture, profile] :
         {std::tuple{"# before: ", &before, &one}, std::tuple{"# after: ", &after, &other}}) {
      out.put(title);
      out.printable(capture->trace().path);
      out.put('\n');
      put_remarks(out, *capture, profile->counts);
    }
    return;
  }
  Json document = json_document();
  add_capture(document["before"], before, one.counts, one.threads);
  add_capture(document["after"], after, other.counts, other.threads);
  Json rows = Json::array();
  for (const Change& change : changes) rows.push_back(json_of(change, options.by));
  document[std::string(rows_key(options.by))] = std::move(rows);
  out.put(json_line(document));
}

}  // namespace collect::ctl
