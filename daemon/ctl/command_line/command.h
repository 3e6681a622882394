// What the file of a command declares: words, options, and what is called. CLI11 is known to
// command.cc and command_line.cc alone, because its header costs seconds wherever it is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/ctl/control/connection/control_target.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace collect::ctl {

// What holds for every command: it may be given before its name or behind it.
struct Invocation {
  ControlTarget control;
  bool json = false;
};

// What a line came to. Commands borrow it; it outlives them.
struct ParsedLine {
  Invocation invocation;
  std::function<int()> run;          // the chosen command
  bool takes_signals = false;        // it waits for them by itself, and has no other thread yet
  std::vector<std::string> program;  // of `run`: what is behind its options
};

// An option or a positional that was declared. Copies mean the same one.
class Argument {
 public:
  explicit Argument(CLI::Option* option)
      : option_(option) {}  // null: of a command that is not meant

  Argument required() const;
  Argument needs(Argument other) const;
  Argument excludes(Argument other) const;
  bool is_given() const;
  std::string name() const;  // with its dashes

 private:
  CLI::Option* option_;
};

// May change the text. Returns a sentence that says what is wrong with it; empty: nothing.
using TextCheck = std::function<std::string(std::string& text)>;
using TextField = std::variant<std::string*, std::optional<std::string>*>;
using NumberField =
    std::variant<uint16_t*, uint32_t*, uint64_t*, int64_t*, std::optional<uint32_t>*>;

struct Range {
  int least = 0;
  int most = 0;
};

// One command. `names` of an option are as in "-o,--output"; `value` is the word for its value in
// the help. Fields are written while the line is parsed and must live as long as the command: keep
// them in an object that the function given to run() owns.
//
// Of a command that the line does not name nothing is declared: CLI11 takes longer for the options
// of all commands than most commands for their work.
class Command {
 public:
  // Without an app: not named.
  Command(CLI::App* app, ParsedLine& line) : app_(app), line_(&line) {}

  Command subcommand(const char* name, const char* what) const;

  Argument positional(const char* name, std::string& field, const char* help) const;
  Argument positional(const char* name, std::vector<std::string>& field, const char* help) const;
  Argument flag(const char* names, bool& field, const std::string& help) const;
  // A flag that may have a value: --dynamic or --dynamic=PATTERN. May be repeated.
  Argument flag(const char* names, const char* value, std::vector<std::string>& field,
                const char* help) const;
  Argument option(const char* names, const char* value, TextField field, const std::string& help,
                  TextCheck check = nullptr) const;
  // May be repeated.
  Argument option(const char* names, const char* value, std::vector<std::string>& field,
                  const std::string& help, TextCheck check = nullptr) const;
  // Without a range: any whole number from 0 on.
  Argument number(const char* names, const char* value, NumberField field, const char* help,
                  std::optional<Range> range = std::nullopt) const;
  // Also a negative number.
  Argument any_number(const char* names, const char* value, int64_t& field, const char* help) const;
  // "30s", "200ms"; as parse_duration().
  Argument duration(const char* names, std::chrono::nanoseconds& field, const char* help) const;
  // "512K", "10M", "2G", in bytes.
  Argument size(const char* names, std::optional<uint64_t>& field, const char* help) const;
  // One of the words, which are listed in the help.
  Argument word(const char* names, const char* value, TextField field,
                const std::vector<std::string>& words, const char* help) const;
  // The value of one of the words.
  template <class Value>
  Argument choice(const char* names, const char* value, Value& field,
                  std::vector<std::pair<std::string, Value>> words, const char* help) const {
    std::vector<std::string> list;
    for (const auto& one : words) list.push_back(one.first);
    const auto choose = [&field, words = std::move(words)](size_t index) {
      field = words[index].second;
    };
    return choice(names, value, list, choose, help);
  }
  // The version of trace files: 1 or 2.
  Argument atf_version(std::optional<uint32_t>& field, const char* help) const;

  std::vector<Argument> arguments() const;  // that were declared, in their order
  void json(const char* help = "Print JSON instead of tables") const;
  // Where the collector is.
  void collector() const;
  void footer(const std::string& text) const;

  // What the command does. Returns the exit code. `check` is called once the line is parsed and
  // returns a sentence that says what is wrong with it; empty: nothing.
  void run(std::function<int(const Invocation&)> run,
           std::function<std::string()> check = nullptr) const;
  // run() for a command that waits for signals by itself, and is called before any thread exists.
  void run_with_signals(std::function<int(const Invocation&)> run,
                        std::function<std::string()> check = nullptr) const;

 private:
  Argument choice(const char* names, const char* value, const std::vector<std::string>& words,
                  std::function<void(size_t)> choose, const char* help) const;

  CLI::App* app_;
  ParsedLine* line_;
};

// A group of --help, to which commands are added in the order in which it shows them.
class CommandGroup {
 public:
  // `named` is the command that the line names.
  CommandGroup(CLI::App& app, ParsedLine& line, const char* title, std::string named)
      : app_(&app), line_(&line), title_(title), named_(std::move(named)) {}

  Command add(const char* name, const char* what) const;
  // Empty until the line is parsed.
  const std::vector<std::string>& program() const { return line_->program; }

 private:
  CLI::App* app_;
  ParsedLine* line_;
  const char* title_;
  const std::string named_;
};

}  // namespace collect::ctl
