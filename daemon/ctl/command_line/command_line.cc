#include "daemon/ctl/command_line/command_line.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/command_line/command.h"
#include "daemon/ctl/command_line/old_words.h"
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/record/run/run_command.h"
#include "formats/core/text/nearest_word.h"
#include "formats/core/text/printable.h"
#include "formats/core/version.h"

namespace collect::ctl {
namespace {

constexpr const char* kSummary =
    "collectctl records every function call of a program, and reads what was recorded.\n"
    "Build the program with -finstrument-functions, then: collectctl run -- ./program";

constexpr const char* kListFooter =
    "collectctl help COMMAND describes a command, collectctl help options what holds for all.\n";

constexpr const char* kOptionsFooter =
    "Examples:\n"
    "  collectctl run -- ./app --its --own options\n"
    "  collectctl detail start --function 'parse_*' --duration 5s\n"
    "  collectctl watch\n"
    "  collectctl report                            of your newest recording\n"
    "\n"
    "Exit codes: 0 done, 1 failed or standard output could not be written, 2 wrong usage. run has\n"
    "its own: see collectctl run --help.\n"
    "COLLECT_CONTROL sets the default of --control, COLLECT_CONTROL_TLS_CA, _TLS_CERTIFICATE,\n"
    "_TLS_KEY, _TLS_NAME and _TOKEN_FILE set those of --tls-ca and so on. Without --control and\n"
    "COLLECT_CONTROL, the address is that of your collector that runs, also of a run in another\n"
    "terminal; else 127.0.0.1:7711 if you or root listen there, else /run/collectord/control.sock.";

// All commands, on one screen.
std::string command_list(const CLI::App& app, const std::vector<CommandList>& lists) {
  std::string text = std::string(kSummary) + "\n\n";
  for (const CommandList& list : lists) {
    text += std::string(list.title) + ":\n";
    const auto of_group = app.get_subcommands(
        [&list](const CLI::App* command) { return command->get_group() == list.title; });
    for (const CLI::App* command : of_group) {
      constexpr size_t kColumn = 12;
      std::string name = command->get_name();
      name.resize(std::max(name.size(), kColumn), ' ');
      text += fmt::format("  {}{}\n", name, command->get_description());
    }
  }
  return text + kListFooter;
}

// Options and environment of all commands: `help options`.
class OptionsFormatter : public CLI::Formatter {
 public:
  std::string make_subcommands(const CLI::App*, CLI::AppFormatMode) const override { return ""; }
};

// True when `argument` is an option of `command` whose value is the next argument.
bool takes_next(const CLI::App* command, const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  if (argument.find('=') != std::string::npos || (!is_long && argument.size() > 2)) return false;
  const CLI::Option* option = command->get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// The first word that is no option of all commands nor its value; of `help COMMAND` the second.
// Empty: there is none.
std::string named_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "help") continue;
    if (!word.starts_with("-")) return word;
    if (takes_next(&app, word)) ++i;
  }
  return "";
}

// Takes the program of `run` and its arguments off the line: they are not ours to parse. Returns
// what is left for CLI11.
std::vector<std::string> split_off_program(const CLI::App& app, const std::vector<std::string>& all,
                                           std::vector<std::string>& program) {
  std::vector<std::string> ours;
  const CLI::App* const run = app.get_subcommand("run");
  const CLI::App* command = &app;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& argument = all[i];
    if (command == run && (argument == "--" || !argument.starts_with("-"))) {
      program.assign(all.begin() + static_cast<ptrdiff_t>(i + (argument == "--" ? 1 : 0)),
                     all.end());
      return ours;
    }
    ours.push_back(argument);
    if (command == &app && !argument.starts_with("-")) {
      command = argument == "run" ? run : nullptr;  // of another command all is ours
    } else if (command != nullptr && takes_next(command, argument) && i + 1 < all.size()) {
      ours.push_back(all[++i]);
    }
  }
  return ours;
}

int wrong_usage(const CLI::App& app, const std::string& message, bool json) {
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  const bool is_run = command == "collectctl run" || command == "collectctl android run" ||
                      command == "collectctl ios run";
  const std::string sentence = fmt::format("{}; see {} --help", message, command);
  if (json) {
    // Where the answer would have been: the output of run is that of its program.
    (is_run ? std::cerr : std::cout) << error_line({Code::kInvalidArgument, sentence});
  } else {
    std::cerr << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  return is_run ? kExitRunFailed : kExitUsage;
}

// " (did you mean report?)", if one of the names is nearly that word.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest_word(word, candidates.data(), candidates.size());
  return near.empty() ? "" : fmt::format(" (did you mean {}?)", near);
}

std::string did_you_mean(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return did_you_mean(word, names);
}

// The nearest option, where dashes make nothing nearer.
std::string nearest_option(const std::string& word, const std::vector<std::string>& names) {
  std::string near = did_you_mean(word.substr(2), names);
  if (!near.empty()) near.insert(near.find("mean ") + 5, "--");
  return near;
}

// The first option that the command does not know, where CLI11 would list all that it did not
// expect.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::App* at = command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("-") || argument == "-") continue;
    const bool is_long = argument.starts_with("--");
    const std::string word =
        is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    bool is_known = false;
    for (const CLI::App* at = command; at != nullptr; at = at->get_parent()) {
      is_known = is_known || at->get_option_no_throw(word) != nullptr;
    }
    if (is_known) continue;
    return fmt::format("there is no option {}{}", word, is_long ? nearest_option(word, names) : "");
  }
  return "";
}

// What is wrong with the words up to the command, if anything. CLI11 would say that none is there.
std::string wrong_beginning(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-")) {
      const auto named = app.get_subcommands(
          [&word](const CLI::App* command) { return command->check_name(word); });
      return named.empty()
                 ? fmt::format("there is no command \"{}\"{}", word, did_you_mean(app, word))
                 : "";
    }
    const std::string option =
        word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (app.get_option_no_throw(option) == nullptr) return "there is no option " + option;
    if (takes_next(&app, word)) ++i;
  }
  return "";
}

// A reader that goes away ends our output, not the process.
void print_help(const std::string& text) {
  std::signal(SIGPIPE, SIG_IGN);
  std::cout << text << std::flush;
}

// `help COMMAND` is COMMAND --help. True: the help was printed.
bool print_general_help(CLI::App& app, const std::vector<CommandList>& lists,
                        std::vector<std::string>& arguments) {
  const bool is_help = !arguments.empty() && arguments.front() == "help";
  const bool is_alone = arguments.empty() || arguments == std::vector<std::string>{"help"} ||
                        arguments.front() == "-h" || arguments.front() == "--help";
  if (is_alone) {
    print_help(command_list(app, lists));
  } else if (is_help && arguments[1] == "options") {
    app.formatter(std::make_shared<OptionsFormatter>());
    print_help(app.help());
  } else {
    if (is_help) {
      arguments.erase(arguments.begin());
      arguments.emplace_back("--help");
    }
    return false;
  }
  return true;
}

// Parses `arguments`. A number: the exit code of the process, instead of the command.
std::optional<int> parse(CLI::App& app, const std::vector<CommandList>& lists,
                         const std::vector<std::string>& arguments) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (const std::string wrong = wrong_beginning(app, arguments); !wrong.empty()) {
    return wrong_usage(app, wrong, json);
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print_help(app.get_subcommands().empty() ? command_list(app, lists) : app.help());
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    print_help(std::string(version.what()) + "\n");
    return kExitOk;
  } catch (const CLI::ExtrasError& error) {
    const std::string unknown = unknown_option(app, arguments);
    return wrong_usage(app, unknown.empty() ? error.what() : unknown, json);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error.what(), json);
  }
  return std::nullopt;
}

// Every command by name and summary, and the one that the line names with its options.
struct Words {
  Words(const std::vector<CommandList>& lists, const std::vector<std::string>& arguments) {
    app.set_help_flag("-h,--help", "Print this help");
    app.set_version_flag("-V,--version", std::string("collectctl ") + kVersion);
    const Command of_all(&app, line);
    of_all.collector();
    of_all.json();
    app.require_subcommand(1);
    app.footer(kOptionsFooter);
    named = named_command(app, arguments);
    for (const CommandList& list : lists) {
      const CommandGroup group(app, line, list.title, named);
      for (const auto add : list.commands) add(group);
    }
  }

  ParsedLine line;
  CLI::App app{kSummary, "collectctl"};
  std::string named;
};

}  // namespace

int parse_and_run(int argc, char** argv, const std::vector<CommandList>& lists) {
  const std::vector<std::string> all(argv + 1, argv + argc);
  auto words = std::make_unique<Words>(lists, all);
  Renamed renamed = rename_old_words(split_off_program(words->app, all, words->line.program));
  if (!renamed.note.empty()) {
    std::cerr << "collectctl: " << printable_sentence(renamed.note) << "\n";
  }
  std::vector<std::string>& arguments = renamed.arguments;
  if (!renamed.program.empty()) return become_program(renamed.program, std::move(arguments));
  if (named_command(words->app, arguments) != words->named) {
    auto fresh = std::make_unique<Words>(lists, arguments);
    fresh->line.program = std::move(words->line.program);
    words = std::move(fresh);
  }
  if (print_general_help(words->app, lists, arguments)) return kExitOk;
  const std::optional<int> ended = parse(words->app, lists, arguments);
  if (ended) return *ended;
  // A reader that goes away ends our output, not the process; a traced program keeps the default.
  if (!words->line.takes_signals) take_default_signals();
  return words->line.run();
}

}  // namespace collect::ctl
