// collectctl detail
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {
namespace {

void add_target(const Command& command, DetailOptions& detail) {
  command.collector();
  command.json();
  command.positional("TARGET", detail.target, "Session or agent (default: everywhere)");
  add_thread(command, detail.threads);
}

}  // namespace

void add_detail(const CommandGroup& group) {
  const Command detail =
      group.add("detail", "Start or stop recording of registers and stack bytes");
  const Command start = detail.subcommand("start", "Record detail from now on");
  struct Options {
    DetailOptions detail;
    bool arm = false;
  };
  const auto started = std::make_shared<Options>();
  DetailOptions& wanted = started->detail;
  add_target(start, wanted);
  add_function(start, wanted.functions);
  const Argument arm = start.flag(
      "--arm", started->arm, "Only keep detail in the rings, for a later detail start --pre-roll");
  (void)start
      .duration("--duration", wanted.duration, "Stop automatically after this time, for example 5s")
      .excludes(arm);
  (void)start
      .duration("--pre-roll", wanted.pre_roll,
                "Also ship armed detail of this time before, for example 2s")
      .excludes(arm);
  start.footer("Example: collectctl detail start --function 'parse_*' --duration 5s --pre-roll 2s");
  start.run([started](const Invocation& invocation) {
    started->detail.mode = started->arm ? DetailMode::kArmed : DetailMode::kOn;
    return set_detail(online(invocation), started->detail);
  });
  const Command stop = detail.subcommand("stop", "Stop recording detail");
  const auto stopped = std::make_shared<DetailOptions>();
  add_target(stop, *stopped);
  stop.run(
      [stopped](const Invocation& invocation) { return set_detail(online(invocation), *stopped); });
}

}  // namespace collect::ctl
