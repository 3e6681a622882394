#include "daemon/ctl/record/summary/process_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

std::string processes_text(uint64_t count) {
  return count == 1 ? "1 process" : with_thousands(count) + " processes";
}

}  // namespace

std::string summary_line(const char* label, const std::string& text) {
  char start[32];
  std::snprintf(start, sizeof(start), "  %-10s ", label);
  return fmt::format("{}{}\n", start, text);
}

std::string missing_lines(const RunOutcome& outcome) {
  std::string text;
  for (size_t i = 0; i < std::min(outcome.missing.size(), kMaxListedProcesses); ++i) {
    const MissingProcess& process = outcome.missing[i];
    text += summary_line("missing", fmt::format("process {} ({}, user {}):", process.pid,
                                                printable(process.program), process.uid));
    text += summary_line("", printable_sentence(process.reason));
  }
  if (outcome.missing.size() > kMaxListedProcesses) {
    text += summary_line("", fmt::format("and {} more", processes_text(outcome.missing.size() -
                                                                       kMaxListedProcesses)));
  }
  if (outcome.unknown_processes != 0) {
    text += summary_line("missing", fmt::format("nothing is known of {}: too many ran at once",
                                                processes_text(outcome.unknown_processes)));
  }
  if (!outcome.became.empty()) {
    text +=
        summary_line("missing", printable(outcome.became) + " was not recorded: --dynamic is for");
    text += summary_line("", fmt::format("{}, which {} starts it by.", printable(outcome.planned),
                                         printable(outcome.program)));
    text += summary_line("", "Name it: collectctl run --dynamic -- " + shell_word(outcome.became));
  }
  return text;
}

std::string quiet_lines(const RunOutcome& outcome) {
  const bool is_asked = outcome.dynamic || largest_session(outcome.sessions) == nullptr;
  // The program itself is what the rest of the summary is about.
  if (!is_asked || outcome.quiet.empty() ||
      (outcome.quiet.size() == 1 && outcome.became.empty() &&
       outcome.quiet.front().processes == 1)) {
    return "";
  }
  std::string text = summary_line("ran", "with the agent, but called no traced function:");
  for (size_t i = 0; i < std::min(outcome.quiet.size(), kMaxListedProcesses); ++i) {
    const QuietProgram& program = outcome.quiet[i];
    text += summary_line(
        "", fmt::format("{} of {}", processes_text(program.processes), printable(program.program)));
  }
  if (outcome.quiet.size() > kMaxListedProcesses) {
    text += summary_line(
        "", fmt::format("and of {} more",
                        counted(outcome.quiet.size() - kMaxListedProcesses, "program")));
  }
  return text;
}

}  // namespace collect::ctl
