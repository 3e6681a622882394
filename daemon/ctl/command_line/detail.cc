// The commands that choose what agents record, and how much of each call, as the command line knows
// them.
#include <string>

#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {
namespace {

void add_detail(CLI::App& app, Line& line) {
  CLI::App* detail =
      add_command(app, "detail", "Start or stop recording of registers and stack bytes");
  detail->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, api::DetailMode mode) {
    CLI::App* command = add_online(*detail, line, name, what, [&line, mode](const Online& to) {
      line.detail.mode = mode;
      line.detail.duration = duration_of(line.duration);
      line.detail.pre_roll = duration_of(line.pre_roll);
      return set_detail(to, line.detail);
    });
    command->add_option("TARGET", line.detail.target, "Session or agent (default: everywhere)");
    command->add_option("--thread", line.detail.threads, kThreadHelp)
        ->type_name("THREAD")
        ->check(thread_check())
        ->allow_extra_args(false);
    return command;
  };
  CLI::App* start = add("start", "Record detail from now on", api::DETAIL_MODE_ON);
  CLI::App* arm =
      add("arm", "Keep detail in the rings for a later start --pre-roll", api::DETAIL_MODE_ARMED);
  add("stop", "Stop recording detail", api::DETAIL_MODE_OFF);
  for (CLI::App* command : {start, arm}) {
    command->add_option("--function", line.detail.functions, kFunctionHelp)
        ->type_name("FUNCTION")
        ->allow_extra_args(false);
  }
  start
      ->add_option("--duration", line.duration,
                   "Stop automatically after this time, for example 5s")
      ->type_name("DURATION")
      ->check(duration_check());
  start
      ->add_option("--pre-roll", line.pre_roll,
                   "Also ship armed detail of this time before, for example 2s")
      ->type_name("DURATION")
      ->check(duration_check());
  start->footer(
      "Example: collectctl detail start --function 'parse_*' --duration 5s --pre-roll 2s");
}

void add_trigger(CLI::App& app, Line& line) {
  CLI::App* trigger =
      add_command(app, "trigger",
                  "Record detail when a function is called, takes long or throws, or a "
                  "counter exceeds a value");
  trigger->require_subcommand(1);
  CLI::App* set = add_online(
      *trigger, line, "set", "Set the trigger, in place of the triggers before",
      [&line](const Online& to) {
        if (line.trigger.functions.empty() && line.trigger.counter.empty()) {
          return failed(to, {Code::kInvalidArgument, "say --function, or --counter and --above"});
        }
        line.trigger.longer_than = duration_of(line.longer_than);
        line.trigger.duration = duration_of(line.duration);
        line.trigger.pre_roll = duration_of(line.pre_roll);
        return set_trigger(to, line.trigger);
      });
  CLI::Option* function = set->add_option("--function", line.trigger.functions, kFunctionHelp)
                              ->type_name("FUNCTION")
                              ->allow_extra_args(false);
  CLI::Option* counter =
      set->add_option("--counter", line.trigger.counter,
                      "When this counter of the program (collect_counter) passes --above")
          ->type_name("NAME")
          ->excludes(function);
  CLI::Option* above = set->add_option("--above", line.trigger.above, "The value that it passes")
                           ->type_name("N")
                           ->needs(counter);
  counter->needs(above);
  const auto duration = [&](const char* name, std::string& value, const char* what) {
    return set->add_option(name, value, what)->type_name("DURATION")->check(duration_check());
  };
  CLI::Option* longer = duration("--longer-than", line.longer_than,
                                 "Only when a call takes more than this, for example 5ms");
  longer->excludes(counter);
  set->add_flag("--throws", line.trigger.throws, "Only when an exception leaves the function")
      ->excludes(longer)
      ->excludes(counter);
  duration("--duration", line.duration, "Stop detail after this time");
  set->add_option("--until", line.trigger.until, "Stop detail when this function is called")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  duration("--pre-roll", line.pre_roll, "Arm detail now, and ship this time before the event");
  set->add_option("--times", line.trigger.times, "Fire at most this many times (default: no limit)")
      ->type_name("N")
      ->check(whole_number());
  set->footer(
      "Without --duration and --until detail continues until detail stop, and it fires once. Each "
      "time\n"
      "there is a marker in the session. Triggers end with the session. Several: grpcurl.\n"
      "Examples: collectctl trigger set --function 'parse_*' --longer-than 5ms --pre-roll 1s\n"
      "          --duration 1s --times 3\n"
      "          collectctl trigger set --counter queue_depth --above 1000 --duration 1s");
  CLI::App* show =
      add_online(*trigger, line, "show", "Show the triggers, and how often each has fired",
                 [&line](const Online& to) { return show_triggers(to, line.name); });
  CLI::App* clear = add_online(
      *trigger, line, "clear", "Remove the triggers; detail stays as it is",
      [&line](const Online& to) { return set_trigger(to, {.target = line.trigger.target}); });
  for (CLI::App* command : {set, clear}) {
    command->add_option("TARGET", line.trigger.target,
                        "Session or agent (default: every one that records)");
  }
  show->add_option("TARGET", line.name, "Session or agent (default: every one that records)");
}

void add_filter(CLI::App& app, Line& line) {
  CLI::App* filter =
      add_online(app, line, "filter", "Choose which functions are recorded from now on",
                 [&line](const Online& to) { return set_function_filter(to, line.functions); });
  filter->add_option("TARGET", line.functions.target, "Session or agent (default: everywhere)");
  CLI::Option* clear =
      filter->add_flag("--clear", line.functions.clear, "Record every function again");
  filter->add_option("--only", line.functions.only, kFunctionHelp)
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter
      ->add_option("--except", line.functions.except,
                   "Do not record this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter->footer(
      "It replaces the filter before. Names are looked up in the modules that are loaded now.\n"
      "Example: collectctl filter --only 'parse_*' --except parse_char");
}

}  // namespace

void add_detail_commands(CLI::App& app, Line& line) {
  add_detail(app, line);
  add_trigger(app, line);
  add_filter(app, line);
}

}  // namespace collect::ctl
