// Options of `run` and `android run` that say how a program is recorded.
#include <chrono>
#include <cstdlib>
#include <string>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/online/text.h"

namespace collect::ctl {
namespace {

// A duration as the agent reads it: agent/AGENT.md "Settings".
CLI::Validator shortest_call() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::chrono::nanoseconds kHour = std::chrono::hours(1);
        const auto parsed = parse_duration(text);
        if (!parsed.ok()) return parsed.error().message;
        if (parsed->count() < 1 || *parsed > kHour) {
          return "\"" + text + "\" is not from 1 ns to 1 h";
        }
        text = std::to_string(parsed->count()) + "ns";
        return std::string();
      },
      "", "duration");
}

// How long a recording may last: agent/AGENT.md "Settings".
CLI::Validator longest_recording() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 1000);
        const auto parsed = parse_duration(text);
        if (!parsed.ok()) return parsed.error().message;
        if (parsed->count() < 1 || *parsed > kLongest) {
          return "\"" + text + "\" is not a time up to 24000 h";
        }
        text = std::to_string(parsed->count()) + "ns";
        return std::string();
      },
      "", "duration");
}

CLI::Validator size_check() {
  return CLI::Validator(
      [](std::string& text) {
        const auto parsed = parse_size(text);
        if (!parsed.ok()) return parsed.error().message;
        text = std::to_string(*parsed);
        return std::string();
      },
      "", "size");
}

// How much of the program is recorded.
void add_limits(CLI::App& command, AgentSettings& agent) {
  command
      .add_option("--only", agent.only,
                  "Record only this function, from the first call on: its name, with or without "
                  "namespace and arguments, a pattern with * and ?, or a 0x… id; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  command.add_option("--except", agent.except, "Do not record this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  command
      .add_option("--max-depth", agent.max_depth,
                  "Record calls down to this depth of each thread, 1 to 1000000; deeper ones are "
                  "left out and counted")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  command
      .add_option("--longer-than", agent.longer_than,
                  "Leave out calls that return sooner, and count them: a time such as 5us, 2ms, 1s")
      ->type_name("DURATION")
      ->transform(shortest_call());
  command
      .add_option("--max-rate", agent.max_rate,
                  "Switch off functions that are called more often than this in a second, while "
                  "the program runs, and name them: 1 to 1000000000")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000).description(""));
  command
      .add_option("--max-time", agent.max_time,
                  "End the recording after this time, counted from the start of the program, which "
                  "continues untraced")
      ->type_name("DURATION")
      ->transform(longest_recording());
  command
      .add_option(
          "--max-size", agent.max_bytes,
          "End the recording of each process at this size: 512K, 10M, 2G; the program continues "
          "untraced")
      ->type_name("BYTES")
      ->transform(size_check());
  command.add_flag("--idle", agent.start_idle, "Record nothing until collectctl start");
}

}  // namespace

void add_recording_options(CLI::App& command, AgentSettings& agent) {
  command
      .add_option("--detail", agent.detail,
                  "Registers and stack bytes of each call: off, armed (kept in the ring for a "
                  "later detail start --pre-roll), on")
      ->type_name("MODE")
      ->check(CLI::IsMember({"off", "armed", "on"}));
  command
      .add_option("--buffer", agent.buffer_mb,
                  "Memory for rings in each process, in MB: 1 to 16384 (default 64)")
      ->type_name("MB")
      ->check(CLI::Range(1, 16 * 1024).description(""));
  add_limits(command, agent);
  command.add_option("--atf-version", agent.atf_version, "Version of the trace files: 1 or 2")
      ->type_name("VERSION")
      ->check(CLI::IsMember({1, 2}));
}

ControlTarget run_control(const ControlTarget& given, const std::string& root) {
  const char* variable = std::getenv("COLLECT_CONTROL");
  ControlTarget control = given;
  if (control.address.empty() && variable != nullptr && root.empty()) control.address = variable;
  add_from_environment(control);
  return control;
}

}  // namespace collect::ctl
