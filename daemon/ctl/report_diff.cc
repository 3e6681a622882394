#include "daemon/ctl/report_diff.h"

#include <algorithm>
#include <map>

#include "daemon/ctl/report_text.h"

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
    case ReportSort::kTotal:
      by(&calls::GroupTimes::total_ns);
      break;
    case ReportSort::kSelf:
      by(&calls::GroupTimes::self_ns);
      break;
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
  out.put(
      "Total before   Total after        Change      %   Self before    Self after        Change"
      "  Calls change  ");
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
    put_row_name(out, row, options.by == ReportBy::kThread ? ReportBy::kModule : options.by);
    out.put('\n');
  }
}

void put_times_json(TextOut& out, std::string_view key, const calls::GroupTimes& times) {
  out.put(",\"");
  out.put(key);
  out.put("\":{\"calls\":");
  out.dec(times.calls);
  put_json_field(out, "total_ns", times.total_ns);
  put_json_field(out, "self_ns", times.self_ns);
  out.put('}');
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
  out.put("{\"before\":{");
  put_capture_json(out, before, one.counts, one.threads);
  out.put("},\"after\":{");
  put_capture_json(out, after, other.counts, other.threads);
  out.put("},\"");
  out.put(rows_key(options.by));
  out.put("\":[");
  const char* comma = "";
  for (const Change& change : changes) {
    out.put(comma);
    comma = ",";
    out.put("{\"name\":");
    out.json_string(change.name);
    if (options.by == ReportBy::kCaller) {
      out.put(",\"caller\":");
      out.json_string(change.caller);
    }
    put_times_json(out, "before", change.before);
    put_times_json(out, "after", change.after);
    out.put('}');
  }
  out.put("]}\n");
}

}  // namespace collect::ctl
