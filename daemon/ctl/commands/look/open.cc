// collectctl open
#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/look/open_page.h"

namespace collect::ctl {

void add_open(const CommandGroup& group) {
  const Command command =
      group.add("open", "Show a capture in the browser: flame graph, functions, time line");
  const auto open = std::make_shared<OpenOptions>();
  add_capture(command, open->page.inputs);
  command.option("-o,--output", "FILE", &open->page.output,
                 "File for the page, which is not served then");
  command.flag("--force", open->page.force, "Replace the output file");
  add_selection(command, open->page.selection, "");
  command.flag("--no-browser", open->no_browser, "Only print the page's address");
  command.flag("--no-serve", open->no_serve,
               "Make the page a file, in the user's cache directory or -o");
  command.footer(
      "The page of one capture is served at 127.0.0.1, to you alone, until Ctrl-C or until\n"
      "its last tab is closed for a minute: every call can be reached on it. A capture that is\n"
      "no session is made one meanwhile, in TMPDIR: also traces of Chrome, Perfetto and\n"
      "speedscope, and folded stacks. Several captures, which share one time line, and a part\n"
      "of one are a file that loads nothing.\n"
      "BROWSER is the program that shows it (default: the desktop's).\n"
      "Exit code 1: no browser could be started; the file is there.\n"
      "Example: collectctl run -- ./app && collectctl open");
  command.run([open](const Invocation&) {
    if (!has_capture(open->page.inputs, false)) return kExitUsage;
    open->page.progress = is_terminal(STDERR_FILENO);
    return open_page(*open, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
