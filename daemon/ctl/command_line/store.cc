// Sessions in object storage, as the command line knows them. What they do is done by
// collect-store, which collectctl becomes: an HTTP library would cost each start of `run` its time.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <vector>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/symbolize/child_program.h"

namespace collect::ctl {

int become_store_program(upload::StoreRequest request, bool json) {
  request.json = json;
  request.progress = is_terminal(STDERR_FILENO);
  request.columns = terminal_columns();
  return become_program("collect-store", request.to_arguments());
}

int become_program(const std::string& name, std::vector<std::string> words) {
  words.insert(words.begin(), symbolize::own_program(name));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::cout.flush();
  ::execv(arguments.front(), arguments.data());
  std::cerr
      << "collectctl: " << words.front() << ": " << std::strerror(errno)
      << "; it is a part of the installation, and of a whole build (cmake --build DIRECTORY)\n";
  return kExitUsage;
}

CLI::Validator store_url_check() {
  return CLI::Validator(
      [](std::string& url) {
        const auto parsed = upload::parse_store_url(url);
        return parsed.ok() ? std::string() : parsed.error().message;
      },
      "", "store");
}

void add_upload(CLI::App& app, Line& line) {
  CLI::App* command = add_command(app, "upload", "Copy sealed sessions to object storage (S3)");
  command
      ->add_option("PATH", line.store.paths,
                   "Sessions, or directories above sessions: all below them")
      ->required();
  command
      ->add_option("--store", line.store.location.url,
                   "Bucket that they are copied to: s3://BUCKET")
      ->type_name("URL")
      ->check(store_url_check())
      ->required();
  command
      ->add_option("--tables", line.store.tables,
                   "Put tables of Parquet beside each: functions (what they took, in all and by "
                   "second), or all (each call and event too)")
      ->type_name("functions|all")
      ->check(CLI::IsMember({"functions", "all"}));
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.store.want = upload::StoreWant::kUpload;
      return become_store_program(line.store, line.json);
    };
  });
  command->footer(
      "What is there already is not sent again, so an interrupted upload continues. A session "
      "counts\n"
      "only when its last object, COMMIT, is there. The sessions stay on the disk.\n" +
      std::string(kStoreVariables) +
      "Exit code 1: some sessions were not uploaded; a message says why.\n"
      "Example: collectctl upload ada_traces --store s3://traces");
}

}  // namespace collect::ctl
