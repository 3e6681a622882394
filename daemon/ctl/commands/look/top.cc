// collectctl top
#include "daemon/ctl/look/top.h"

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

void add_top(const CommandGroup& group) {
  const Command command =
      group.add("top", "Show the busiest functions and threads of a recording, live");
  struct Options {
    TopOptions top;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  TopOptions& top_options = options->top;
  command.collector();
  command.json();
  command.positional("SESSION", top_options.followed.session,
                     "Which one (default: the newest that records)");
  add_function(command, top_options.followed.functions);
  add_thread(command, top_options.followed.threads);
  add_follow_times(command, top_options.followed);
  command.choice<TopSort>("--sort", "COLUMN", top_options.sort,
                          {{"cpu", TopSort::kCpu},
                           {"self", TopSort::kSelf},
                           {"total", TopSort::kTotal},
                           {"calls", TopSort::kCalls},
                           {"longest", TopSort::kLongest}},
                          "First by: cpu, self, total, calls or longest");
  command.flag("--threads", top_options.shows_threads, "Show the threads first");
  const Argument times =
      command.number("-n,--times", "N", &top_options.times, "Print so many tables, and end");
  (void)command.flag("--once", options->once, "As -n 1").excludes(times);
  command.footer(
      "On a terminal it is a page with keys: q quit; u, s, t, c, l: sort by self time on a\n"
      "processor, self time, total time, calls, longest call; h threads or functions; / shows\n"
      "what has a text in its name; p pause.\n"
      "Otherwise, and with -n, --once and --json, every update is printed.\n"
      "Self time of a call that has not ended is known with the next event of its thread.\n"
      "Example: collectctl top --sort longest --function 'parse_*'");
  command.run([options](const Invocation& invocation) {
    if (options->once) options->top.times = 1;
    return top(online(invocation), options->top);
  });
}

}  // namespace collect::ctl
