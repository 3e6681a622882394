// What `report` prints, for people and for programs.
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {

// A bold line where there is color.
void put_heading(TextOut& out, std::string_view figures, std::string_view what, bool color);
// "12.345 ms": three decimals of the largest unit that keeps a digit before the point.
void put_time(TextBuffer& out, uint64_t ns, size_t width);
void put_time_cell(TextBuffer& out, uint64_t ns);                              // 12 columns
void put_change_cell(TextBuffer& out, uint64_t before_ns, uint64_t after_ns);  // "+1.500 ms", 13
// "12.3", right-aligned; "-" where the whole is 0.
void put_percent_cell(TextBuffer& out, uint64_t part, uint64_t whole, size_t width);

// The key of the list of rows in JSON, and the heading of the names in text.
std::string_view rows_key(ReportBy by);
std::string_view rows_heading(ReportBy by);
// "path", "threads" and so on, up to the counts of what is wrong.
void add_capture(Json& json, const ReportedCapture& capture, const calls::ThreadCounts& counts,
                 uint64_t threads);
void add_times(Json& json, const calls::GroupTimes& times);  // "calls", "total_ns", "self_ns"
// With file and line of a function if `lines`. Cut to so many columns; 0: whole.
void put_row_name(TextBuffer& out, const ReportRow& row, ReportBy by, bool lines, size_t columns);
// Lines with # about what the times leave out, and whether the session is complete.
void put_remarks(TextBuffer& out, const ReportedCapture& capture,
                 const calls::ThreadCounts& counts);
void put_health(TextBuffer& out, const ReportedCapture& capture);

void print_report_text(TextOut& out, const ReportedCapture& capture, const ReportProfile& profile,
                       const ReportOptions& options);
void print_report_json(TextOut& out, const ReportedCapture& capture, const ReportProfile& profile,
                       const ReportOptions& options);

}  // namespace collect::ctl
