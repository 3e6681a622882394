// The commands that follow a recording, as the command line knows them.
#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {
namespace {

void add_watch(CLI::App& app, Line& line) {
  CLI::App* watcher = add_online(
      app, line, "watch", "Follow a session until it is sealed", [&line](const Online& to) {
        line.watch.interval =
            std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(line.interval));
        return watch(to, line.watch);
      });
  watcher->add_option("SESSION", line.watch.session, "Which one (default: the newest)");
  watcher->add_option("--interval", line.interval, "Time between two updates (default 1s)")
      ->type_name("DURATION")
      ->check(duration_check());
  CLI::Option* agents =
      watcher->add_flag("--agents", line.watch.agents, "Follow the agents instead of a session");
  watcher->add_option("--filter", line.watch.filter, "Process name, pid, device id or tag")
      ->type_name("FILTER")
      ->needs(agents);
  watcher->footer("On a terminal, one line is updated in place; otherwise every update is a line.");
}

// Which calls of which recording, of `tail` and `top`.
void add_followed(CLI::App& command, Line& line, FollowedCalls& followed) {
  command.add_option("SESSION", followed.session, "Which one (default: the newest that records)");
  command.add_option("--function", followed.functions, kFunctionHelp)
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  command.add_option("--thread", followed.threads, kThreadHelp)
      ->type_name("THREAD")
      ->check(thread_check())
      ->allow_extra_args(false);
  command
      .add_option("--interval", line.interval,
                  "Time between two updates (default 1s, at least 100ms)")
      ->type_name("DURATION")
      ->check(duration_check());
  command
      .add_option("--duration", line.duration,
                  "End after this time, for example 30s (default: when the session is sealed)")
      ->type_name("DURATION")
      ->check(duration_check());
}

void take_durations(const Line& line, FollowedCalls& followed) {
  followed.interval = duration_of(line.interval);
  followed.duration = duration_of(line.duration);
  followed.slower_than = duration_of(line.slower_than);
}

void add_tail(CLI::App& app, Line& line) {
  CLI::App* command = add_online(app, line, "tail", "Print the calls of a recording as they end",
                                 [&line](const Online& to) {
                                   take_durations(line, line.tail);
                                   return tail(to, line.tail);
                                 });
  add_followed(*command, line, line.tail);
  command
      ->add_option("--slower-than", line.slower_than,
                   "Only calls that took at least this long, for example 5ms")
      ->type_name("DURATION")
      ->check(duration_check());
  command
      ->add_option("--limit", line.tail.limit,
                   "Calls of one update (default 100, at most 1000): of more, the longest")
      ->type_name("N")
      ->check(whole_number());
  command->footer(
      "Calls are read behind the recording, which never waits for it; what was skipped is said.\n"
      "Calls that were open when it began are not shown. Durations are those of the clock.\n"
      "Example: collectctl tail --function 'parse_*' --slower-than 5ms");
}

void add_top(CLI::App& app, Line& line) {
  CLI::App* command =
      add_online(app, line, "top", "Show the busiest functions and threads of a recording, live",
                 [&line](const Online& to) {
                   take_durations(line, line.top.followed);
                   return top(to, line.top);
                 });
  add_followed(*command, line, line.top.followed);
  command->add_option("--sort", line.top.sort, "First by: self, total, calls or longest")
      ->type_name("COLUMN")
      ->transform(one_of<TopSort>({{"self", TopSort::kSelf},
                                   {"total", TopSort::kTotal},
                                   {"calls", TopSort::kCalls},
                                   {"longest", TopSort::kLongest}}));
  command->add_flag("--threads", line.top.shows_threads, "Show the threads first");
  CLI::Option* times =
      command->add_option("-n,--times", line.top.times, "Print so many tables, and end")
          ->type_name("N")
          ->check(whole_number());
  command->add_flag_callback(
             "--once", [&line] { line.top.times = 1; }, "The same as -n 1")
      ->excludes(times);
  command->footer(
      "On a terminal it is a page with keys: q quit; s, t, c, l: sort by self time, total time,\n"
      "calls, longest call; h threads or functions; / shows what has a text in its name; p pause.\n"
      "Otherwise, and with -n, --once and --json, every update is printed.\n"
      "Self time of a call that continues is known with the next event of its thread.\n"
      "Example: collectctl top --sort longest --function 'parse_*'");
}

}  // namespace

void add_live_commands(CLI::App& app, Line& line) {
  add_watch(app, line);
  add_tail(app, line);
  add_top(app, line);
}

}  // namespace collect::ctl
