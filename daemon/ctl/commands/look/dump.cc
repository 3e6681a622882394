// collectctl dump: of what was recorded, and with --follow of what is recorded now.
#include "daemon/ctl/dump/dump.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/look/tail.h"

namespace collect::ctl {
namespace {

struct DumpLine {
  DumpOptions dump;
  FollowedCalls followed;
  bool follow = false;
};

int dump_capture(DumpLine& line, const Invocation& invocation) {
  if (!has_capture(line.dump.paths, invocation.json)) return kExitUsage;
  line.dump.json = invocation.json;
  // Events on the same terminal show by themselves how far they are.
  line.dump.progress = is_terminal(STDERR_FILENO) && !is_terminal(STDOUT_FILENO);
  return dump(line.dump, std::cout, std::cerr);
}

int follow_recording(DumpLine& line, bool is_limited, const Invocation& invocation) {
  const DumpOptions& dump = line.dump;
  if (dump.paths.size() > 1) {
    return answer_of(invocation)
        .refuse_briefly({Code::kInvalidArgument, "--follow is of one session"}, kExitUsage);
  }
  FollowedCalls& followed = line.followed;
  if (!dump.paths.empty()) followed.session = dump.paths.front();
  followed.functions = dump.functions;
  followed.threads = dump.threads;
  if (is_limited) {
    followed.limit = static_cast<uint32_t>(std::min<uint64_t>(dump.limit, UINT32_MAX));
  }
  return tail(online(invocation), followed);
}

}  // namespace

void add_dump(const CommandGroup& group) {
  const Command command = group.add("dump", "Print the events, or with --follow calls as they end");
  const auto line = std::make_shared<DumpLine>();
  command.positional("PATH", line->dump.paths,
                     "A session, one thread or one file of it (default: your newest recording); "
                     "with --follow: which session of the collector (default: the newest that "
                     "records)");
  command.json();
  const Argument merged =
      command.flag("--merged", line->dump.merged,
                   "Print in time order across threads, and across sessions on the collector's "
                   "clock");
  const Argument detail =
      command.flag("--detail", line->dump.detail, "Print registers and stack bytes too");
  add_thread(command, line->dump.threads);
  const auto [from, until] = add_window(command, line->dump.when);
  add_function(command, line->dump.functions);
  const Argument limit = command.number(
      "--limit", "N", &line->dump.limit,
      "Print at most this many events; with --follow, calls of one update (default 100, "
      "at most 1000): of more, the longest");
  const Argument follow = command.flag(
      "--follow", line->follow, "Print the calls of a recording as they end, until it is sealed");
  for (const Argument& other : {merged, detail, from, until}) (void)other.excludes(follow);
  for (const Argument& time : add_follow_times(command, line->followed)) (void)time.needs(follow);
  (void)command
      .duration("--slower-than", line->followed.slower_than,
                "Only calls that took at least this long, for example 5ms")
      .needs(follow);
  command.collector();
  command.footer(
      "With --merged, several sessions share one time line, for example of a phone and a server.\n"
      "\n"
      "With --follow, calls are read behind the recording, which never waits for it; what was\n"
      "skipped is reported. Calls that were open when it began are not shown. Durations are those\n"
      "of the clock.\n"
      "\n"
      "Examples:\n"
      "  collectctl dump --merged --function 'parse_*' --json PATH | jq .\n"
      "  collectctl dump --follow --function 'parse_*' --slower-than 5ms");
  command.run([line, limit](const Invocation& invocation) {
    return line->follow ? follow_recording(*line, limit.is_given(), invocation)
                        : dump_capture(*line, invocation);
  });
}

}  // namespace collect::ctl
