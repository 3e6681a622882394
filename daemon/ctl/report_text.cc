#include "daemon/ctl/report_text.h"

#include <algorithm>
#include <charconv>

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

void put_row_json(TextOut& out, const ReportRow& row, ReportBy by) {
  out.put('{');
  put_row_names_json(out, row, by);
  put_json_field(out, "calls", row.times.calls);
  put_json_field(out, "total_ns", row.times.total_ns);
  put_json_field(out, "self_ns", row.times.self_ns);
  if (by == ReportBy::kFunction) {
    put_json_field(out, "exceptions", row.exceptions);
    put_json_field(out, "open_calls", row.open);
    put_json_field(out, "calls_without_return", row.skipped);
    put_json_field(out, "calls_cut_by_gap", row.cut_by_gap);
    put_json_field(out, "calls_cut_by_window", row.cut_by_window);
    if (row.durations) {
      put_json_field(out, "shortest_ns", row.durations->shortest_ns);
      put_json_field(out, "p50_ns", row.durations->p50_ns);
      put_json_field(out, "p95_ns", row.durations->p95_ns);
      put_json_field(out, "p99_ns", row.durations->p99_ns);
      put_json_field(out, "longest_ns", row.durations->longest_ns);
    } else {
      out.put(
          ",\"shortest_ns\":null,\"p50_ns\":null,\"p95_ns\":null,\"p99_ns\":null,"
          "\"longest_ns\":null");
    }
  }
  out.put('}');
}

}  // namespace

void put_time(TextBuffer& out, uint64_t ns, size_t width) {
  const Unit& unit = unit_of(ns);
  // In thousandths of the unit, which micros() prints with three decimals.
  out.micros(static_cast<int64_t>(ns / (unit.ns / 1000)), width);
  out.put(unit.name);
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

void put_json_field(TextBuffer& out, std::string_view key, uint64_t value) {
  out.put(",\"");
  out.put(key);
  out.put("\":");
  out.dec(value);
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

void put_capture_json(TextBuffer& out, const ReportedCapture& capture,
                      const calls::ThreadCounts& counts, uint64_t threads) {
  out.put("\"path\":");
  out.json_string(capture.trace().path);
  put_json_field(out, "threads", threads);
  put_json_field(out, "events", counts.events);
  put_json_field(out, "lost_events", capture.lost_events(counts));
  if (const auto& health = capture.health(); health) {
    out.put(",\"state\":");
    out.json_string(storage::session_state_name(health->state));
    out.put(health->losses_known ? ",\"losses_known\":true" : ",\"losses_known\":false");
    out.put(",\"missing\":");
    out.json_string(health->missing);
  }
  put_json_field(out, "open_calls", counts.ended_by(EndReason::kOpenAtEnd));
  put_json_field(out, "calls_without_return", counts.ended_by(EndReason::kSkipped));
  put_json_field(out, "unmatched_returns", counts.lone_ends);
  put_json_field(out, "untimed_calls", counts.too_deep);
  put_json_field(out, "unknown_kinds", counts.unknown_kinds);
  put_json_field(out, "stalls", counts.stalls);
  put_json_field(out, "stalled_ns", counts.stalled_ns);
  put_json_field(out, "gaps", counts.gaps);
  put_json_field(out, "calls_cut_by_gap", counts.ended_by(EndReason::kCutByGap));
  put_json_field(out, "running_ns", counts.running_ns);
  if (capture.window().is_everything()) return;
  put_json_field(out, "from_ns", capture.window().first_ns);
  put_json_field(out, "to_ns", capture.window().last_ns);
  put_json_field(out, "calls_cut_by_window", counts.ended_by(EndReason::kCutByWindow));
}

void put_row_names_json(TextBuffer& out, const ReportRow& row, ReportBy by) {
  switch (by) {
    case ReportBy::kFunction:
    case ReportBy::kCaller:
      out.put("\"function_id\":\"");
      out.hex(row.id);
      out.put('"');
      break;
    case ReportBy::kModule:
      out.put("\"module_id\":");
      out.dec(row.id);
      break;
    case ReportBy::kThread:
      out.put("\"thread\":");
      out.dec(row.id);
      put_json_field(out, "tid", row.thread_id);
      break;
  }
  out.put(",\"name\":");
  out.json_string(row.name);
  if (by != ReportBy::kCaller) return;
  out.put(",\"caller\":");
  out.json_string(row.caller);
}

void put_row_name(TextBuffer& out, const ReportRow& row, ReportBy by) {
  out.printable(row.name);
  if (by == ReportBy::kThread) {
    out.put("  (thread_");
    out.dec(row.id);
    out.put(", tid ");
    out.dec(row.thread_id);
    out.put(')');
  } else if (by == ReportBy::kCaller) {
    out.put(" < ");
    out.printable(row.caller);
  }
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
         " calls went on behind the end of the window: counted up to there");
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
  out.put("  Total time      %     Self time      %         Calls  ");
  if (has_percentiles) out.put("         p50           p95           p99  ");
  out.put(rows_heading(options.by));
  if (options.color) out.control("\x1b[0m");
  out.put('\n');
  const uint64_t whole = profile.counts.running_ns;
  const uint64_t shown = std::min<uint64_t>(options.limit, profile.rows.size());
  for (uint64_t i = 0; i < shown; ++i) {
    const ReportRow& row = profile.rows[i];
    put_time_cell(out, row.times.total_ns);
    put_percent_cell(out, row.times.total_ns, whole, 7);
    out.put("  ");
    put_time_cell(out, row.times.self_ns);
    put_percent_cell(out, row.times.self_ns, whole, 7);
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
    put_row_name(out, row, options.by);
    out.put('\n');
  }
  put_remarks(out, capture, profile.counts);
}

void print_report_json(TextOut& out, const ReportedCapture& capture, const ReportProfile& profile,
                       const ReportOptions& options) {
  out.put('{');
  put_capture_json(out, capture, profile.counts, profile.threads);
  out.put(",\"");
  out.put(rows_key(options.by));
  out.put("\":[");
  const uint64_t shown = std::min<uint64_t>(options.limit, profile.rows.size());
  for (uint64_t i = 0; i < shown; ++i) {
    if (i != 0) out.put(',');
    put_row_json(out, profile.rows[i], options.by);
  }
  out.put("]}\n");
}

}  // namespace collect::ctl
