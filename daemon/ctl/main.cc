// collectctl: streams and exit codes. The command line is in command_line/, each command in
// commands/.
#include <iostream>
#include <string_view>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/online.h"
#include "daemon/ctl/record/run/run_command.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/machine/machine_limits.h"
#include "formats/core/threads.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"

namespace collect::ctl {
namespace {

// Reports a fault of this machine: memory, threads, descriptors.
int fault(const Error& error, int argc, char** argv) {
  std::cerr << "collectctl: " << to_string(error) << "\n";
  const bool is_run = argc > 1 && std::string_view(argv[1]) == "run";
  return is_run ? kExitRunFailed : kExitFailed;
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  collect::fit_into_address_space();
  collect::storage::hold_standard_streams();
  collect::storage::StandardOutput output(std::cout);
  int code = 0;
  {
    collect::ctl::PrintableStream out(std::cout), err(std::cerr);
    const collect::Status done = collect::contain(
        [&] { code = collect::ctl::parse_and_run(argc, argv, collect::ctl::all_commands()); });
    if (!done.ok()) code = collect::ctl::fault(done.error(), argc, argv);
  }
  return output.finish("collectctl", code);
}
