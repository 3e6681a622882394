// collect-load: `collectctl load` and `collectctl query --server`, which start it.
#include <csignal>
#include <iostream>

#include "daemon/ctl/terminal/terminal.h"
#include "daemon/warehouse/load_command.h"
#include "formats/core/threads.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"

namespace collect::warehouse {
namespace {

int serve(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  storage::remove_leftovers_on_signals();
  ctl::PrintableStream out(std::cout), err(std::cerr);
  const auto arguments = LoadArguments::parse({argv + 1, argv + argc});
  if (!arguments.ok()) {
    std::cerr << arguments.error().message << "\n";
    return 2;
  }
  return arguments->command == "query" ? query(*arguments, std::cout, std::cerr)
                                       : load(*arguments, std::cout, std::cerr);
}

}  // namespace
}  // namespace collect::warehouse

int main(int argc, char** argv) {
  collect::storage::hold_standard_streams();
  collect::storage::StandardOutput output(std::cout);
  int code = 0;
  const collect::Status done =
      collect::contain([&] { code = collect::warehouse::serve(argc, argv); });
  if (!done.ok()) {
    std::cerr << "collectctl: " << to_string(done.error()) << "\n";
    code = 1;
  }
  return output.finish("collectctl", code);
}
