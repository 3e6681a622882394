#include "daemon/ctl/report/report_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

using calls::EndReason;

constexpr size_t kTimeDigits = 9;

struct Unit {
  uint64_t ns;
  const char* name;
};
constexpr Unit kUnits[] = {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}};

const Unit& unit_of(uint64_t ns) {
  for (const Unit& unit : kUnits) {
    if (ns >= unit.ns) return unit;
  }
  return kUnits[2];
}

Json row_names_json(const ReportRow& row, ReportBy by) {
  Json json = Json::object();
  switch (by) {
    case ReportBy::kFunction:
    case ReportBy::kCaller: {
      TextBuffer id;
      id.hex(row.id);
      json["function_id"] = id.text();
      break;
    }
    case ReportBy::kModule:
      json["module_id"] = row.id;
      break;
    case ReportBy::kThread:
      json["thread"] = row.id;
      json["tid"] = row.thread_id;
      break;
  }
  json["name"] = row.name;
  if (by == ReportBy::kCaller) json["caller"] = row.caller;
  if (!row.source.file.empty()) {
    json["file"] = row.source.file;
    json["line"] = row.source.line;
  }
  return json;
}

Json json_of(const ReportRow& row, ReportBy by, bool has_cpu) {
  Json json = row_names_json(row, by);
  add_times(json, row.times);
  if (has_cpu) {
    json["cpu_total_ns"] = cpu_total_ns(row.times);
    json["cpu_self_ns"] = cpu_self_ns(row.times);
  }
  if (by != ReportBy::kFunction) return json;
  json["exceptions"] = row.exceptions;
  json["open_calls"] = row.open;
  json["calls_without_return"] = row.skipped;
  json["calls_cut_by_gap"] = row.cut_by_gap;
  json["calls_cut_by_window"] = row.cut_by_window;
  if (!row.durations) return json;
  json["shortest_ns"] = row.durations->shortest_ns;
  json["p50_ns"] = row.durations->p50_ns;
  json["p95_ns"] = row.durations->p95_ns;
  json["p99_ns"] = row.durations->p99_ns;
  json["longest_ns"] = row.durations->longest_ns;
  return json;
}

// Where the threads were when they were not on a processor.
constexpr size_t kWaitingFunctions = 5;

void put_waits(TextBuffer& out, const ReportedCapture& capture, const ReportProfile& profile) {
  const uint64_t off_ns = profile.counts.waited_ns;
  out.put("# off the processor: ");
  put_time(out, off_ns, 0);
  out.put(" of ");
  put_time(out, profile.counts.running_ns, 0);
  if (capture.window().is_everything()) {
    const storage::StallTotals totals = capture.manifest().stall_totals();
    out.put(profile.counts.stalls == 0 ? ", blocked " : "; with stalls: blocked ");
    put_time(out, totals.blocked_ns, 0);
    out.put(", preempted ");
    put_time(out, totals.preempted_ns, 0);
    out.put(", ");
    out.dec(totals.switches);
    out.put(" switches");
  }
  out.put('\n');
  const auto waited = [](const ReportRow* row) {
    return row->times.self_ns - cpu_self_ns(row->times);
  };
  std::vector<const ReportRow*> rows;
  for (const ReportRow& row : profile.rows) rows.push_back(&row);
  const size_t most = std::min(rows.size(), kWaitingFunctions);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(most), rows.end(),
                    [&](const auto* a, const auto* b) { return waited(a) > waited(b); });
  for (size_t i = 0; i < most && waited(rows[i]) != 0; ++i) {
    out.put("#   ");
    put_time_cell(out, waited(rows[i]));
    put_percent_cell(out, waited(rows[i]), off_ns, 7);
    out.put("  in ");
    out.put(printable(rows[i]->name));
    out.put('\n');
  }
  const uint64_t lost = capture.manifest().switches_lost;
  if (lost == 0) return;
  out.put("# ");
  out.dec(lost);
  out.put(" switches were not seen: times around them count as on the processor\n");
}

}  // namespace

void put_time(TextBuffer& out, uint64_t ns, size_t width) {
  const Unit& unit = unit_of(ns);
  // In thousandths of the unit, which micros() prints with three decimals.
  out.micros(static_cast<int64_t>(ns / (unit.ns / 1000)), width);
  out.put(unit.name);
}

void put_heading(TextOut& out, std::string_view figures, std::string_view what, bool color) {
  if (color) out.control("\x1b[1m");
  out.put(figures);
  out.put(what);
  if (color) out.control("\x1b[0m");
  out.put('\n');
}

void put_time_cell(TextBuffer& out, uint64_t ns) {
  put_time(out, ns, kTimeDigits);
  if (ns >= 1'000'000'000) out.put(' ');  // as wide as the other units
}

void put_change_cell(TextBuffer& out, uint64_t before_ns, uint64_t after_ns) {
  const bool is_less = after_ns < before_ns;
  const uint64_t size = is_less ? before_ns - after_ns : after_ns - before_ns;
  TextBuffer number;
  put_time(number, size, 0);
  const size_t width = kTimeDigits + 4 - (size >= 1'000'000'000 ? 1 : 0);
  out.repeat(' ', number.size() + 1 < width ? width - number.size() - 1 : 0);
  out.put(size == 0 ? ' ' : is_less ? '-' : '+');
  out.put(number.text());
  if (size >= 1'000'000'000) out.put(' ');
}

void put_percent_cell(TextBuffer& out, uint64_t part, uint64_t whole, size_t width) {
  __extension__ using UInt128 = unsigned __int128;
  if (whole == 0) {
    out.repeat(' ', width - 1);
    out.put('-');
    return;
  }
  const auto tenths = static_cast<uint64_t>((UInt128{part} * 2000 + whole) / (UInt128{whole} * 2));
  char digits[32];
  char* end = std::to_chars(digits, digits + sizeof digits - 2, tenths / 10).ptr;
  *end++ = '.';
  *end++ = static_cast<char>('0' + tenths % 10);
  const auto length = static_cast<size_t>(end - digits);
  out.repeat(' ', length < width ? width - length : 0);
  out.put(std::string_view(digits, length));
}

void add_times(Json& json, const calls::GroupTimes& times) {
  json["calls"] = times.calls;
  json["total_ns"] = times.total_ns;
  json["self_ns"] = times.self_ns;
}

std::string_view rows_key(ReportBy by) {
  switch (by) {
    case ReportBy::kFunction:
      return "functions";
    case ReportBy::kThread:
      return "by_thread";
    case ReportBy::kModule:
      return "modules";
    case ReportBy::kCaller:
      return "callers";
  }
  return "";
}

std::string_view rows_heading(ReportBy by) {
  switch (by) {
    case ReportBy::kFunction:
      return "Function";
    case ReportBy::kThread:
      return "Thread";
    case ReportBy::kModule:
      return "Module";
    case ReportBy::kCaller:
      return "Function < caller";
  }
  return "";
}

void add_capture(Json& json, const ReportedCapture& capture, const calls::ThreadCounts& counts,
                 uint64_t threads) {
  json["path"] = capture.trace().path;
  json["threads"] = threads;
  json["events"] = counts.events;
  json["lost_events"] = capture.lost_events(counts);
  if (const auto& health = capture.health(); health) {
    json["state"] = storage::session_state_name(health->state);
    json["losses_known"] = health->losses_known;
    add_text(json, "missing", health->missing);
  }
  add_text(json, "no_switches", capture.manifest().identity.no_switches);
  json["open_calls"] = counts.ended_by(EndReason::kOpenAtEnd);
  json["calls_without_return"] = counts.ended_by(EndReason::kSkipped);
  json["unmatched_returns"] = counts.lone_ends;
  json["untimed_calls"] = counts.too_deep;
  json["unknown_kinds"] = counts.unknown_kinds;
  json["stalls"] = counts.stalls;
  json["stalled_ns"] = counts.stalled_ns;
  json["gaps"] = counts.gaps;
  json["calls_cut_by_gap"] = counts.ended_by(EndReason::kCutByGap);
  json["running_ns"] = counts.running_ns;
  if (capture.window().is_everything()) return;
  const calls::Window& window = capture.window();
  if (window.first_ns != 0) json["from_ns"] = window.first_ns;
  if (window.last_ns != UINT64_MAX) json["to_ns"] = window.last_ns;
  json["calls_cut_by_window"] = counts.ended_by(EndReason::kCutByWindow);
}

void put_row_name(TextBuffer& out, const ReportRow& row, ReportBy by, bool lines, size_t columns) {
  std::string name = printable(row.name);
  if (by == ReportBy::kThread) {
    name += fmt::format("  (thread_{}, tid {})", row.id, row.thread_id);
  } else if (by == ReportBy::kCaller) {
    name += " < " + printable(row.caller);
  } else if (lines && !row.source.file.empty()) {
    name += fmt::format("  {}:{}", printable(row.source.file), row.source.line);
  }
  out.put(cut_to(name, columns));
}

void put_remarks(TextBuffer& out, const ReportedCapture& capture,
                 const calls::ThreadCounts& counts) {
  const auto remark = [&](uint64_t count, std::string_view what) {
    if (count == 0) return;
    out.put("# ");
    out.dec(count);
    out.put(what);
    out.put('\n');
  };
  remark(counts.ended_by(EndReason::kOpenAtEnd),
         " calls were open at the end: counted up to their thread's last event");
  remark(counts.ended_by(EndReason::kSkipped),
         " calls have no return: counted up to the return of an outer call");
  remark(counts.ended_by(EndReason::kCutByGap),
         " calls ended while events were lost: counted up to the last event before");
  remark(counts.ended_by(EndReason::kCutByWindow),
         " calls continued behind the end of the window: counted up to there");
  remark(counts.lone_ends, " returns without a call: not counted");
  remark(counts.too_deep, " calls too deep to be timed");
  remark(counts.unknown_kinds, " events of unknown kind: not counted");
  remark(capture.lost_events(counts),
         " events were lost while recording: times around them are estimates");
  if (counts.stalls != 0) {
    out.put("# ");
    out.dec(counts.stalls);
    out.put(counts.stalls == 1 ? " stall, " : " stalls, ");
    put_time(out, counts.stalled_ns, 0);
    out.put(", subtracted from the times\n");
  }
  if (const std::string& why = capture.manifest().identity.no_switches; !why.empty()) {
    out.put(capture.has_switches()
                ? "# time on the processor is estimated, by how long threads ran in each 10 ms: "
                : "# time on the processor is not known: ");
    out.sentence(why);
    out.put('\n');
  }
  put_health(out, capture);
}

void put_health(TextBuffer& out, const ReportedCapture& capture) {
  const auto& health = capture.health();
  if (!health || health->is_complete()) return;
  out.put("# the session is not complete: ");
  out.put(storage::session_state_name(health->state));
  out.put(": ");
  out.sentence(health->missing);
  out.put('\n');
}

void print_report_text(TextOut& out, const ReportedCapture& capture, const ReportProfile& profile,
                       const ReportOptions& options) {
  const bool has_percentiles = options.percentiles && options.by == ReportBy::kFunction;
  if (options.color) out.control("\x1b[1m");
  constexpr std::string_view kHeading = "  Total time      %     Self time      %         Calls  ";
  constexpr std::string_view kCpuHeading =
      "    Self CPU      %     Self time      %    Total time      %         Calls  ";
  constexpr std::string_view kPercentiles = "         p50           p95           p99  ";
  const std::string_view heading = profile.cpu_ns ? kCpuHeading : kHeading;
  out.put(heading);
  if (has_percentiles) out.put(kPercentiles);
  const size_t room =
      columns_left(options.columns, heading.size() + (has_percentiles ? kPercentiles.size() : 0));
  out.put(rows_heading(options.by));
  if (options.color) out.control("\x1b[0m");
  out.put('\n');
  const uint64_t whole = profile.counts.running_ns;
  const auto put_share = [&out](uint64_t ns, uint64_t of_ns) {
    put_time_cell(out, ns);
    put_percent_cell(out, ns, of_ns, 7);
  };
  const uint64_t shown = std::min<uint64_t>(options.limit, profile.rows.size());
  for (uint64_t i = 0; i < shown; ++i) {
    const ReportRow& row = profile.rows[i];
    if (profile.cpu_ns) {
      put_share(cpu_self_ns(row.times), *profile.cpu_ns);
      out.put("  ");
      put_share(row.times.self_ns, whole);
      out.put("  ");
      put_share(row.times.total_ns, whole);
    } else {
      put_share(row.times.total_ns, whole);
      out.put("  ");
      put_share(row.times.self_ns, whole);
    }
    out.dec(row.times.calls, 14);
    out.put("  ");
    if (has_percentiles) {
      for (const auto percentile :
           {&ReportPercentiles::p50_ns, &ReportPercentiles::p95_ns, &ReportPercentiles::p99_ns}) {
        if (row.durations) {
          put_time_cell(out, (*row.durations).*percentile);
        } else {
          out.put("           -");
        }
        out.put("  ");
      }
    }
    put_row_name(out, row, options.by, options.lines, room);
    out.put('\n');
  }
  if (profile.cpu_ns) put_waits(out, capture, profile);
  put_remarks(out, capture, profile.counts);
}

void print_report_json(TextOut& out, const ReportedCapture& capture, const ReportProfile& profile,
                       const ReportOptions& options) {
  Json document = json_document();
  add_capture(document, capture, profile.counts, profile.threads);
  if (profile.cpu_ns) document["cpu_ns"] = *profile.cpu_ns;
  Json rows = Json::array();
  const uint64_t shown = std::min<uint64_t>(options.limit, profile.rows.size());
  for (uint64_t i = 0; i < shown; ++i) {
    rows.push_back(json_of(profile.rows[i], options.by, profile.cpu_ns.has_value()));
  }
  document[std::string(rows_key(options.by))] = std::move(rows);
  out.put(json_line(document));
}

}  // namespace collect::ctl
