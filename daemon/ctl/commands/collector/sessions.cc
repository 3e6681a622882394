// collectctl sessions: of a collector, below a directory, or in a store.
#include <unistd.h>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/stored_sessions.h"

namespace collect::ctl {

void add_sessions(const CommandGroup& group) {
  const Command command = group.add(
      "sessions", "List the recordings of the collector, or those below a directory or in a store");
  struct Options {
    std::string filter;
    upload::StoreRequest store;
  };
  const auto options = std::make_shared<Options>();
  command.collector();
  command.json();
  command.positional("FILTER", options->filter,
                     "Process name, pid, device id or tag; or a directory, whose sessions are "
                     "listed without a collector");
  add_store(command, options->store.location.url,
            "List the sessions of this store instead: s3://BUCKET; see collectctl upload --help");
  command.footer(
      "The newest first. A word that names a directory, or begins with / or ./, is a directory.\n"
      "Example: collectctl sessions ada_traces");
  command.run([options](const Invocation& invocation) {
    if (!options->store.location.url.empty()) {
      return become_store_program(options->store, invocation.json);
    }
    const Online to = online(invocation);
    if (!is_path(options->filter)) return list_sessions(to, options->filter);
    const StoredSessionsOptions stored{options->filter, to.json, is_terminal(STDERR_FILENO),
                                       to.columns};
    return list_stored_sessions(stored, to.out, to.err);
  });
}

}  // namespace collect::ctl
