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
                 "File for the page (default: one in the user's cache directory)");
  command.flag("--force", open->page.force, "Replace the output file");
  add_selection(command, open->page.selection, "");
  command.flag("--no-browser", open->no_browser, "Only make the page, and print its address");
  command.footer(
      "Several captures share one time line. The page is one file that loads nothing else.\n"
      "BROWSER is the program that shows it (default: the desktop's).\n"
      "Exit code 1: no browser could be started; the page is there.\n"
      "Example: collectctl run -- ./app && collectctl open");
  command.run([open](const Invocation&) {
    if (!has_capture(open->page.inputs, false)) return kExitUsage;
    open->page.progress = is_terminal(STDERR_FILENO);
    return open_page(*open, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
