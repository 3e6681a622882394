#include "daemon/ctl/command_line/recording_options.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>

#include "storage/select/time_words.h"

namespace collect::ctl {
namespace {

// A duration as the agent reads it, from 1 ns on: agent/AGENT.md "Settings".
TextCheck duration_up_to(std::chrono::nanoseconds most, const char* outside) {
  return [most, outside](std::string& text) {
    const auto parsed = select::parse_duration(text);
    if (!parsed.ok()) return parsed.error().message;
    if (parsed->count() < 1 || *parsed > most) return fmt::format("\"{}\" {}", text, outside);
    text = fmt::format("{}ns", parsed->count());
    return std::string();
  };
}

// How much of the program is recorded.
void add_limits(const Command& command, AgentSettings& agent) {
  command.option("--only", "FUNCTION", agent.only,
                 "Record only this function, from the first call on: its name, with or without "
                 "namespace and arguments, a pattern with * and ?, or a 0x… id; may be repeated");
  command.option("--except", "FUNCTION", agent.except,
                 "Do not record this function; may be repeated");
  command.number("--max-depth", "N", &agent.max_depth,
                 "Record calls down to this depth of each thread, 1 to 1000000; deeper ones are "
                 "left out and counted",
                 Range{1, 1'000'000});
  command.option("--longer-than", "DURATION", &agent.longer_than,
                 "Leave out calls that return sooner, and count them: a time such as 5us, 2ms, 1s",
                 duration_up_to(std::chrono::hours(1), "is not from 1 ns to 1 h"));
  command.number("--max-rate", "N", &agent.max_rate,
                 "Switch off functions that are called more often than this in a second, while "
                 "the program runs, and name them: 1 to 1000000000",
                 Range{1, 1'000'000'000});
  command.option("--max-time", "DURATION", &agent.max_time,
                 "End the recording after this time, counted from the start of the program, which "
                 "continues untraced",
                 duration_up_to(std::chrono::hours(24 * 1000), "is not a time up to 24000 h"));
  command.size("--max-size", agent.max_bytes,
               "End the recording of each process at this size: 512K, 10M, 2G; the program "
               "continues untraced");
  command.flag("--idle", agent.start_idle, "Record nothing until collectctl start");
}

}  // namespace

void add_recording(const Command& command, AgentSettings& agent) {
  command.word("--detail", "MODE", &agent.detail, {"off", "armed", "on"},
               "Registers and stack bytes of each call: off, armed (kept in the ring for a "
               "later detail start --pre-roll), on");
  command.number("--buffer", "MB", &agent.buffer_mb,
                 "Memory for rings in each process, in MB: 1 to 16384 (default 64)",
                 Range{1, 16 * 1024});
  add_limits(command, agent);
  command.atf_version(agent.atf_version, "Version of the trace files: 1 or 2");
}

void add_when_full(const Command& command, const char* names, AgentSettings& agent,
                   const char* help) {
  command.word(names, "POLICY", &agent.full, {"wait", "drop", "overwrite"}, help);
}

void add_dynamic(const Command& command, std::vector<std::string>& patterns) {
  command.flag("--dynamic", "PATTERN", patterns,
               "Record a program that was not built for it, by changing its code in memory; with "
               "=PATTERN: those of it and its libraries whose file name or path matches, and files "
               "named by path, such as programs that it starts; may be repeated (x86-64)");
}

void add_recording_output(const Command& command, RecordingOptions& recording) {
  command.option("-o,--output", "DIRECTORY", &recording.root, kSessionsHelp);
  command.option("--symbols", "DIRECTORY", recording.symbols,
                 "Directory with unstripped libraries, found by build id; may be repeated");
  command.collector();
  command.flag("-q,--quiet", recording.quiet, "Print nothing unless something is wrong");
  command.json("Print the summary as one line of JSON on standard error");
}

ControlTarget run_control(const ControlTarget& given, const std::string& root) {
  const char* variable = std::getenv("COLLECT_CONTROL");
  ControlTarget control = given;
  if (control.address.empty() && variable != nullptr && root.empty()) control.address = variable;
  add_from_environment(control);
  return control;
}

}  // namespace collect::ctl
