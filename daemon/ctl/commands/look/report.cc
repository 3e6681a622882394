// collectctl report
#include "daemon/ctl/report/report.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {
namespace {

void add_rows(const Command& command, ReportOptions& report) {
  command.choice<ReportBy>("--by", "KIND", report.by,
                           {{"function", ReportBy::kFunction},
                            {"thread", ReportBy::kThread},
                            {"module", ReportBy::kModule},
                            {"caller", ReportBy::kCaller}},
                           "What a row is (default function)");
  command.option("--graph", "FUNCTION", &report.graph,
                 "Instead: on which paths this function was called, and what it called");
  command.flag("--waits", report.waits,
               "Instead: on which paths threads were off the processor, the longest first");
  command.flag("--locks", report.locks,
               "Instead: which locks functions waited for, and which threads had them");
  command.flag("--samples", report.samples,
               "Instead: in which functions threads ran, and in which calls, by the samples of "
               "run --sample");
  command.option("--diff", "PATH", &report.other, "What is different in this other capture");
  add_window(command, report.when);
  command.flag("--percentiles", report.percentiles,
               "With columns of how long the calls took: p50, p95, p99");
  command.flag("--lines", report.lines,
               "With the file and line where each function begins, where they are known");
  command.choice<ReportSort>("--sort", "COLUMN", report.sort,
                             {{"total", ReportSort::kTotal},
                              {"self", ReportSort::kSelf},
                              {"cpu", ReportSort::kCpu},
                              {"calls", ReportSort::kCalls},
                              {"name", ReportSort::kName}},
                             "Column to sort by (default cpu where it is known, else total)");
  command.flag("--wall", report.wall, "Without time on the processor, where that is known");
  command.number("--limit", "N", &report.limit, "Print at most this many rows");
  add_thread(command, report.threads);
}

}  // namespace

void add_report(const CommandGroup& group) {
  const Command command =
      group.add("report", "Show calls, total and self time of each function, without stalls");
  struct Options {
    ReportOptions report;
    ColorChoice color = ColorChoice::kAuto;
  };
  const auto options = std::make_shared<Options>();
  add_capture(command, options->report.path);
  command.json();
  add_color(command, options->color);
  add_rows(command, options->report);
  command.footer(
      "Percent are of the time that all threads ran together.\n"
      "Example: collectctl report OLD --diff NEW --sort self --limit 20");
  command.run([options](const Invocation& invocation) {
    ReportOptions& wanted = options->report;
    if (!has_capture(wanted.path, invocation.json)) return kExitUsage;
    wanted.json = invocation.json;
    wanted.color = shows_color(options->color, invocation.json);
    wanted.columns = terminal_columns();
    wanted.progress = is_terminal(STDERR_FILENO);
    return report(wanted, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
