#include "daemon/ctl/command_line/old_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace collect::ctl {
namespace {

// Options first: they belong to the old name of their command.
constexpr auto kOldWords = std::to_array<OldWords>({
    {"plan", "--functions", "--all"},
    {"dump", "--to", "--until"},
    {"report", "--to", "--until"},
    {"filter", "--only", "--set --only"},
    {"filter", "--except", "--set --except"},
    {"", "android doctor", "doctor"},
    {"", "android stop", "android undo"},
    {"", "convert-session", "convert --at-collector"},
    {"", "detail arm", "detail start --arm"},
    {"", "files", "inspect --at-collector --files"},
    {"", "ios doctor", "doctor"},
    {"", "manifest", "inspect --at-collector"},
    {"", "plan", "list --plan"},
    {"", "stats", "collectors"},
    {"", "tail", "dump --follow"},
    {"", "threads", "agents --threads"},
    {"", "trigger clear", "trigger --clear"},
    {"", "trigger set", "trigger --set"},
    {"", "trigger show", "trigger"},
});

constexpr auto kOldPrograms = std::to_array<OldProgram>({
    {"conformance", "collect-conformance"},
    {"load", "collect-load"},
});

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void add_note(Renamed& renamed, const std::string& old, const std::string& now) {
  renamed.note += fmt::format("{}{} is now {}", renamed.note.empty() ? "" : "; ", old, now);
}

// Where the command is: behind the options of all commands and their values.
size_t command_index(const std::vector<std::string>& arguments) {
  size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with("-")) {
    const bool has_value =
        arguments[at] != "--json" && arguments[at].find('=') == std::string::npos;
    at += has_value ? 2 : 1;
  }
  if (at < arguments.size() && arguments[at] == "help") ++at;
  return std::min(at, arguments.size());
}

void rename_option(const OldWords& row, Renamed& renamed, size_t command) {
  std::vector<std::string>& arguments = renamed.arguments;
  if (command == arguments.size() || arguments[command] != row.command) return;
  const std::vector<std::string> now = words_of(row.now);
  const bool is_set = std::count(arguments.begin(), arguments.end(), now.front()) > 0;
  if (now.size() > 1 && is_set) return;  // as of today
  const std::string old = row.old;
  bool is_used = false;
  for (size_t i = command + 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    const bool has_value = arguments[i].starts_with(old + "=");
    if (arguments[i] != old && !has_value) continue;
    arguments[i] = now.back() + arguments[i].substr(old.size());
    if (now.size() > 1 && !is_used) {
      arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(i++), now.front());
    }
    is_used = true;
  }
  if (is_used) {
    const std::string command_space = row.command + std::string(" ");
    add_note(renamed, command_space + old, command_space + row.now);
  }
}

bool rename_command(const OldWords& row, Renamed& renamed, size_t command) {
  std::vector<std::string>& arguments = renamed.arguments;
  const std::vector<std::string> old = words_of(row.old);
  const auto first = arguments.begin() + static_cast<ptrdiff_t>(command);
  if (arguments.size() - command < old.size()) return false;
  if (!std::equal(old.begin(), old.end(), first)) return false;
  const std::vector<std::string> now = words_of(row.now);
  const auto behind = arguments.erase(first, first + static_cast<ptrdiff_t>(old.size()));
  arguments.insert(behind, now.begin(), now.end());
  add_note(renamed, row.old, row.now);
  return true;
}

}  // namespace

std::span<const OldWords> old_words() {
  return kOldWords;
}

std::span<const OldProgram> old_programs() {
  return kOldPrograms;
}

Renamed rename_old_words(std::vector<std::string> arguments) {
  Renamed renamed{std::move(arguments), "", ""};
  const size_t command = command_index(renamed.arguments);
  for (const OldProgram& row : kOldPrograms) {
    if (command == renamed.arguments.size() || renamed.arguments[command] != row.old) continue;
    renamed.arguments.erase(renamed.arguments.begin() + static_cast<ptrdiff_t>(command));
    renamed.program = row.program;
    add_note(renamed, row.old, std::string(row.program) + ", a program");
    return renamed;
  }
  for (const OldWords& row : kOldWords) {
    if (row.command[0] != '\0') {
      rename_option(row, renamed, command);
    } else if (rename_command(row, renamed, command)) {
      break;
    }
  }
  return renamed;
}

}  // namespace collect::ctl
