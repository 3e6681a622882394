// The commands that work on files alone, as the command line knows them.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "daemon/ctl/command_line.h"

namespace collect::ctl {

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

bool wants_color() {
  return is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
}

CLI::App* add_command(CLI::App& app, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->set_help_flag("-h,--help", "Say what this command takes");
  return command;
}

void add_json(CLI::App* command, Line& line) {
  command->add_flag("--json", line.json, "JSON for programs instead of tables for people");
}

namespace {

template <class Options>
CLI::App* add_offline(CLI::App& app, Line& line, Options& options, const char* name,
                      const char* what, int (*run)(const Options&, std::ostream&, std::ostream&)) {
  CLI::App* command = add_command(app, name, what);
  command->add_option("PATH", options.path, "A session, one thread or one file of it")->required();
  add_json(command, line);
  command->callback([&line, &options, run] {
    line.command = [&line, &options, run] {
      options.json = line.json;
      options.color = wants_color() && !line.json;
      options.progress = is_terminal(STDERR_FILENO);
      return run(options, std::cout, std::cerr);
    };
  });
  return command;
}

void add_convert(CLI::App& app, Line& line) {
  CLI::App* command =
      add_command(app, "convert", "Make a capture of another format out of this one");
  command
      ->add_option("INPUT", line.convert.inputs,
                   "A session, or a file of any format; several: the RTC containers of one session")
      ->required();
  command->add_option("--to", line.convert.to, "atf, rtc, wtf, wtf-json or dial9")
      ->required()
      ->transform(CLI::CheckedTransformer(
          std::vector<std::pair<std::string, Target>>{{"atf", Target::kAtf},
                                                      {"rtc", Target::kRtc},
                                                      {"wtf", Target::kWtf},
                                                      {"wtf-json", Target::kWtfJson},
                                                      {"dial9", Target::kDial9}}));
  command
      ->add_option("-o,--output", line.convert.output,
                   "The file to write; for atf the directory that the session is made in")
      ->required();
  command->add_option("--atf-version", line.convert.atf_version, "1 or 2 (default 2)")
      ->check(CLI::Range(1, 2));
  command->add_flag("--force", line.convert.force, "Replace the output file");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.convert.json = line.json;
      line.convert.progress = is_terminal(STDERR_FILENO);
      return convert(line.convert, std::cout, std::cerr);
    };
  });
  command->footer(
      "Exit code 1: converted, and what the target has no place for is said.\n"
      "Example: collectctl convert traces/session_…/pid_… --to wtf -o app.wtf-trace");
}

void add_recover(CLI::App& app, Line& line) {
  CLI::App* command =
      add_command(app, "recover", "Make a cut off or damaged capture whole, as far as it holds");
  command
      ->add_option("PATH", line.recover.path,
                   "An unsealed session (sealed in its place), or a file of any other format")
      ->required();
  command->add_option("-o,--output", line.recover.output,
                      "Where the whole file goes (a session needs none)");
  command->add_flag("--force", line.recover.force, "Replace the output file");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.recover.json = line.json;
      line.recover.progress = is_terminal(STDERR_FILENO);
      return recover(line.recover, std::cout, std::cerr);
    };
  });
}

}  // namespace

void add_file_commands(CLI::App& app, Line& line) {
  add_offline(app, line, line.inspect, "inspect", "Say what a file or session is and how it fares",
              inspect);
  CLI::App* verifier = add_offline(app, line, line.verify, "verify",
                                   "Make every check there is; exit code 1 when one fails", verify);
  verifier->add_flag("--strict", line.verify.strict, "Warnings count as findings");

  CLI::App* dumper = add_offline(app, line, line.dump, "dump", "Print the events", dump);
  dumper->add_flag("--merged", line.dump.merged, "In time order across threads");
  dumper->add_flag("--detail", line.dump.detail, "With registers and stack bytes");
  dumper->add_option("--thread", line.dump.threads, "Only thread_N; may be repeated")
      ->allow_extra_args(false);
  dumper->add_option("--from", line.dump.from_ns, "Only from this time on, in ns");
  dumper->add_option("--to", line.dump.to_ns, "Only up to this time, in ns");
  dumper
      ->add_option("--function", line.dump.functions,
                   "Only this function: a name, a pattern with *, or a 0x… id; may be repeated")
      ->allow_extra_args(false);
  dumper->add_option("--limit", line.dump.limit, "At most so many events");
  dumper->footer("Example: collectctl dump --merged --function 'parse_*' --json PATH | jq .");

  add_convert(app, line);
  add_recover(app, line);
  CLI::App* reporter = add_offline(app, line, line.report, "report",
                                   "Calls, total and self time of each function", report);
  reporter->add_option("--sort", line.report.sort, "By total, self, calls or name")
      ->transform(CLI::CheckedTransformer(
          std::vector<std::pair<std::string, ReportSort>>{{"total", ReportSort::kTotal},
                                                          {"self", ReportSort::kSelf},
                                                          {"calls", ReportSort::kCalls},
                                                          {"name", ReportSort::kName}}));
  reporter->add_option("--limit", line.report.limit, "At most so many functions");
  reporter->add_option("--thread", line.report.threads, "Only thread_N; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace collect::ctl
