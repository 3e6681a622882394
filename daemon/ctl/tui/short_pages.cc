#include "daemon/ctl/tui/short_pages.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ctl/report/report_text.h"
#include "formats/core/text/figures.h"

namespace collect::ctl::tui {

CallsPage::CallsPage(const Capture& capture, const ReportRow& function,
                     const html::FunctionCalls& calls)
    : title_(fmt::format("Slowest {} of {} of {}", calls.slowest.size(),
                         counted(calls.calls, "call"), printable(function.name))) {
  const bool has_waits = capture.functions().cpu_ns.has_value();
  TextBuffer out;
  put_right(out, "TOOK", kTimeColumns);
  if (has_waits) put_right(out, "WAITED", kTimeColumns);
  put_right(out, "SELF", kTimeColumns);
  put_right(out, "BEGAN AFTER", kTimeColumns);
  out.put("  THREAD");
  heading_ = out.text();
  for (const html::FoundCall& call : calls.slowest) {
    const html::Bar& bar = call.bar;
    const uint64_t after_ns = bar.begin_ns - std::min(bar.begin_ns, capture.start_ns());
    out.clear();
    put_duration(out, bar.total_ns);
    if (has_waits) put_duration(out, call.waited_ns);
    put_duration(out, bar.self_ns);
    put_duration(out, after_ns);
    const std::string thread = printable(report_thread_name(capture.reported(), call.thread));
    out.put("  " + thread);
    rows_.push_back({std::string(out.text()),
                     fmt::format("{} (thread_{}), began at {} ns: collectctl dump --from {} "
                                 "--thread thread_{}{}",
                                 thread, call.thread, with_thousands(bar.begin_ns), bar.begin_ns,
                                 call.thread, bar.is_whole ? "" : "; its end was not recorded")});
  }
}

ThreadsPage::ThreadsPage(const Capture& capture) : threads_(capture.threads()) {
  heading_ = fmt::format("{:>14}{:>10}  {}", "EVENTS", "TID", "THREAD");
  uint64_t events = 0;
  for (const ThreadOfCapture& thread : threads_) events += thread.events;
  rows_.push_back({fmt::format("{:>14}{:>10}  all threads", with_thousands(events), "")});
  for (const ThreadOfCapture& thread : threads_) {
    rows_.push_back({fmt::format("{:>14}{:>10}  {}", with_thousands(thread.events),
                                 thread.thread_id, printable(thread.name)),
                     fmt::format("{} (thread_{})", printable(thread.name), thread.n)});
  }
}

Page::Target ThreadsPage::enter() {
  if (chosen() == 0) return {Target::Kind::kThread};
  return {Target::Kind::kThread, 0, fmt::format("thread_{}", threads_[chosen() - 1].n)};
}

TextPage::TextPage(std::string title, const std::vector<std::string>& lines)
    : title_(std::move(title)) {
  for (const std::string& line : lines) rows_.push_back({line});
}

std::unique_ptr<Page> keys_page() {
  return std::make_unique<TextPage>(
      "Keys",
      std::vector<std::string>{" Up Down k j           a row up or down",
                               " PgUp PgDn Home End    a screen up or down; first, last row",
                               " Enter                 open the function of the row",
                               " Backspace Esc         back",
                               " < >                   sort by the column to the left, right",
                               " / n N                 search in names; next, previous hit",
                               " g                     the call graph",
                               " c                     the slowest calls of the function",
                               " f                     the function, from the call graph",
                               " t                     choose a thread, or all",
                               " i                     what the times leave out",
                               " ? q                   these keys; end",
                               "",
                               " In the call graph:",
                               " Enter                 unfold or fold the row",
                               " + -                   unfold, fold",
                               " Right Left            unfold, then into it; fold, then out",
                               " * =                   unfold all below; fold everything",
                               "",
                               " Percent are of the time that all shown threads ran; of a",
                               " function's callers and callees: of its total time."});
}

std::unique_ptr<Page> remarks_page(const Capture& capture) {
  const ReportedCapture& reported = capture.reported();
  std::vector<std::string> lines = {
      fmt::format("# {}", printable(capture.path())),
      fmt::format("# {}, {}", counted(reported.threads().size(), "thread"),
                  counted(capture.functions().counts.events, "event"))};
  TextBuffer remarks;
  put_remarks(remarks, reported, capture.functions().counts);
  for (std::string_view rest = remarks.text(); !rest.empty();) {
    const size_t end = rest.find('\n');
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  for (std::string& line : lines) line.replace(0, 1, " ");
  return std::make_unique<TextPage>("What the times leave out", lines);
}

}  // namespace collect::ctl::tui
