// collectctl upload
#include "daemon/ctl/command_line/shared_options.h"

#include <fmt/core.h>
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

void add_upload(const CommandGroup& group) {
  const Command command = group.add("upload", "Copy sealed sessions to object storage (S3)");
  const auto request = std::make_shared<upload::StoreRequest>();
  request->want = upload::StoreWant::kUpload;
  command
      .positional("PATH", request->paths, "Sessions, or directories above sessions: all below them")
      .required();
  add_store(command, request->location.url, "Bucket that they are copied to: s3://BUCKET")
      .required();
  command.word("--tables", "functions|all", &request->tables, {"functions", "all"},
               "Put tables of Parquet beside each: functions (what they took, in all and by "
               "second), or all (each call and event too)");
  command.json();
  command.footer(
      fmt::format("What is there already is not sent again, so an interrupted upload continues. A "
                  "session\ncounts only when its last object, COMMIT, is there. The sessions stay "
                  "on the disk.\n{}Exit code 1: some sessions were not uploaded; a message says "
                  "why.\nExample: collectctl upload ada_traces --store s3://traces",
                  kStoreVariables));
  command.run([request](const Invocation& invocation) {
    return become_store_program(*request, invocation.json);
  });
}

}  // namespace collect::ctl
