// collectctl download: from the collector, or whole sessions from a store.
#include "daemon/ctl/control/download.h"

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {
namespace {

int download_from_store(const DownloadOptions& options, bool json) {
  if (!options.files.empty() || options.force || options.output.empty()) {
    std::cerr << "collectctl: from a store whole sessions come, into the directory that -o names, "
                 "and nothing is replaced; see collectctl download --help\n";
    return kExitUsage;
  }
  upload::StoreRequest request;
  request.want = upload::StoreWant::kDownload;
  request.location.url = options.session;
  request.output = options.output;
  return become_store_program(std::move(request), json);
}

}  // namespace

void add_download(const CommandGroup& group) {
  const Command command = group.add("download", "Fetch the files of a session from the collector");
  const auto options = std::make_shared<DownloadOptions>();
  command.collector();
  command.json();
  command.positional("SESSION", options->session,
                     "Which one (default: the newest); or s3://BUCKET, or the URL of a session in "
                     "it: from that store");
  command.positional("FILE", options->files, "Only these files, as collectctl inspect lists them");
  command.option("-o,--output", "DIRECTORY", &options->output,
                 "Directory to write into (default: the session's name)");
  command.flag("--force", options->force,
               "Replace files of the same names that are not of this session");
  command.footer(
      "The manifest is always included. An interrupted download is continued; complete files are\n"
      "kept.");
  command.run([options](const Invocation& invocation) {
    if (upload::is_store_url(options->session)) {
      return download_from_store(*options, invocation.json);
    }
    return download(online(invocation), *options);
  });
}

}  // namespace collect::ctl
