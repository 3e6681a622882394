// collectctl trigger
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {
namespace {

struct TriggerLine {
  TriggerOptions trigger;
  bool set = false;
  bool clear = false;
};

// What is set. Each option needs --set.
void add_new_trigger(const Command& command, Argument set, TriggerOptions& trigger) {
  const Argument function = add_function(command, trigger.functions).needs(set);
  const Argument counter =
      command
          .option("--counter", "NAME", &trigger.counter,
                  "When this counter of the program (collect_counter) passes --above")
          .needs(set)
          .excludes(function);
  const Argument above =
      command.any_number("--above", "N", trigger.above, "The value that it passes").needs(counter);
  (void)counter.needs(above);
  const Argument blocked =
      command
          .duration("--blocked-longer-than", trigger.blocked_longer_than,
                    "When a thread was off the processor, blocked, for more than this")
          .needs(set)
          .excludes(function)
          .excludes(counter);
  const Argument longer = command
                              .duration("--longer-than", trigger.longer_than,
                                        "Only when a call takes more than this, for example 5ms")
                              .needs(set)
                              .excludes(counter)
                              .excludes(blocked);
  (void)command.flag("--throws", trigger.throws, "Only when an exception leaves the function")
      .needs(set)
      .excludes(longer)
      .excludes(counter)
      .excludes(blocked);
  (void)command.duration("--duration", trigger.duration, "Stop detail after this time").needs(set);
  (void)command
      .option("--until", "FUNCTION", trigger.until, "Stop detail when this function is called")
      .needs(set);
  (void)command
      .duration("--pre-roll", trigger.pre_roll,
                "Arm detail now, and ship this time before the event")
      .needs(set);
  (void)command
      .number("--times", "N", &trigger.times, "Fire at most this many times (default: no limit)")
      .needs(set);
}

}  // namespace

void add_trigger(const CommandGroup& group) {
  const Command command = group.add(
      "trigger", "Show, set or remove what starts detail: a call, an exception, a counter, a wait");
  const auto line = std::make_shared<TriggerLine>();
  command.collector();
  command.json();
  command.positional("TARGET", line->trigger.target,
                     "Session or agent (default: every one that records)");
  const Argument set =
      command.flag("--set", line->set, "Set the trigger, in place of the triggers before");
  (void)command.flag("--clear", line->clear, "Remove the triggers; detail stays as it is")
      .excludes(set);
  add_new_trigger(command, set, line->trigger);
  command.footer(
      "Without --set and --clear: shows the triggers, and how often each has fired.\n"
      "Detail starts when the function is called, takes long or throws, a thread was blocked for\n"
      "long (as the kernel reports it: run without --no-switches), or the counter exceeds a "
      "value.\n"
      "Without --duration and --until it continues until detail stop, and the trigger "
      "fires\n"
      "once. Each time there is a marker in the session. Triggers end with the session. Several:\n"
      "grpcurl.\n"
      "Examples: collectctl trigger --set --function 'parse_*' --longer-than 5ms --pre-roll 1s\n"
      "          --duration 1s --times 3\n"
      "          collectctl trigger --set --counter queue_depth --above 1000 --duration 1s");
  command.run([line](const Invocation& invocation) {
    const Online to = online(invocation);
    if (line->clear) return set_trigger(to, {.target = line->trigger.target});
    if (!line->set) return show_triggers(to, line->trigger.target);
    if (line->trigger.functions.empty() && line->trigger.counter.empty() &&
        line->trigger.blocked_longer_than.count() == 0) {
      return failed(to, {Code::kInvalidArgument,
                         "say --function, --blocked-longer-than, or --counter and --above"});
    }
    return set_trigger(to, line->trigger);
  });
}

}  // namespace collect::ctl
