// collectctl run
#include <iostream>

#include "daemon/ctl/command_line/recording_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/run/run_command.h"

namespace collect::ctl {
namespace {

constexpr const char* kRunFooter =
    "run uses the collector at --control (default 127.0.0.1:7711 if you or root listen there,\n"
    "else /run/collectord/control.sock). If none answers there, or with -o, run starts one for\n"
    "this run. With -o, --control is the address at which that collector listens; otherwise it is\n"
    "an error if no collector answers at a given --control.\n"
    "\n"
    "The program gets the agent through LD_PRELOAD and COLLECT_* variables. Your own COLLECT_*\n"
    "variables apply if no option says otherwise, except for COLLECT_CONNECT and COLLECT_LISTEN.\n"
    "The program keeps its standard streams and signals.\n"
    "\n"
    "Exit code: the program's own, 128 + N if signal N ended it, 127 if there is no such\n"
    "program, 126 if it cannot be executed, 125 if collectctl failed. If the program's code is\n"
    "0, also 125 if a session is not complete (failed, recovered), if a process that ran with\n"
    "the agent left none, or if a pattern of --only or --except matched no function.\n"
    "\n"
    "Examples:\n"
    "  collectctl run -o /var/tmp/traces -- ctest --output-on-failure\n"
    "  collectctl run --max-time 10s --max-size 2G --no-follow -- ./server\n"
    "  collectctl run --detail armed -- ./server    then, in another terminal:\n"
    "  collectctl detail start --pre-roll 2s --duration 5s";

}  // namespace

void add_run(const CommandGroup& group) {
  const Command command = group.add("run", "Run a program and record it");
  const auto run = std::make_shared<RunOptions>();
  // For --help alone: it was taken off the line.
  command.positional("PROGRAM", run->command,
                     "Program to run, with its arguments; -- may come before it");
  command.option("-o,--output", "DIRECTORY", &run->root, kSessionsHelp);
  add_when_full(command, "--when-full,--full", run->agent,
                "When the ring is full: wait until there is room, so that nothing is lost (the "
                "default), drop the new event and count it, or overwrite the oldest");
  command.word("--drain", "DRAIN", &run->agent.drain, {"thread", "process"},
               "What ships the events: a process of its own, so that a crash loses nothing (the "
               "default), or a thread of the program");
  command.flag("--no-switches", run->agent.no_switches,
               "Do not record when threads are off the processor, blocked or preempted: reports "
               "show wall time");
  command.option("--libcalls", "PATTERN", &run->agent.libcalls,
                 "Library functions whose calls are recorded: on for those that may block, as "
                 "read or pthread_mutex_lock, where they take longer than 3 us (the default), off, "
                 "or patterns such as 'malloc,free' for every call of these");
  command.option("--sample", "RATE", &run->agent.sample,
                 "Also record so many times in a second where running threads are, as 1kHz: shows "
                 "code that is not instrumented, in report --samples");
  add_recording(command, run->agent);
  add_dynamic(command, run->dynamic);
  command.flag("--no-follow", run->program_only,
               "Record only the program, not the processes that it starts");
  command.flag("--web", run->web,
               "Serve a live page of the recording to browsers of this machine while the program "
               "runs; prints its address");
  command.flag("--open", run->open, "Show the recording in the browser at the end");
  command.collector();
  command.flag("-q,--quiet", run->quiet, "Print nothing unless something is wrong");
  command.json("Print the summary as one line of JSON on standard error");
  command.footer(kRunFooter);
  command.run_with_signals(
      [run](const Invocation& invocation) {
        run->control = run_control(invocation.control, run->root);
        run->json = invocation.json;
        return run_program(*run, std::cerr);
      },
      [run, &program = group.program()]() -> std::string {
        run->command = program;
        return program.empty() ? "the program to run is missing" : "";
      });
}

}  // namespace collect::ctl
