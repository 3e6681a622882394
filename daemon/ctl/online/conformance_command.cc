#include "daemon/ctl/online/conformance_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <ostream>
#include <set>

#include "daemon/ctl/conformance/conformance.h"
#include "daemon/ctl/online/credentials.h"
#include "daemon/ctl/run/job.h"
#include "daemon/ctl/run/program_paths.h"
#include "daemon/ctl/terminal/json.h"
#include "formats/core/text/nearest_word.h"

namespace collect::ctl {
namespace {

using conformance::Outcome;
using conformance::Rule;
using conformance::Verdict;

constexpr int kOk = 0, kFailed = 1, kUsage = 2;
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t kOutcomes = 3;

const char* word_of(Outcome outcome) {
  if (outcome == Outcome::kOk) return "ok";
  return outcome == Outcome::kFailed ? "failed" : "skipped";
}

// The process group of the program that runs; 0: none does.
std::atomic<pid_t> running_group{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);  // a signal handler reads it

void end_program_and_self(int number) {
  if (const pid_t group = running_group.load(); group != 0) ::kill(-group, SIGKILL);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// In a process group of its own, which is ended with it: a drain process belongs to it too.
class ChildProgram final : public conformance::AgentProgram {
 public:
  explicit ChildProgram(pid_t pid) : pid_(pid) { running_group.store(pid); }
  ~ChildProgram() override {
    ::kill(-pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    running_group.store(0);
  }
  bool has_ended() override {
    ended_ = ended_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended_;
  }

 private:
  const pid_t pid_;
  bool ended_ = false;
};

std::vector<std::string> environment_for(const std::string& address,
                                         const std::string& token_file) {
  std::vector<std::string> environment;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("COLLECT_CONNECT=") || variable.starts_with("COLLECT_LISTEN="))
      continue;
    if (!token_file.empty() && variable.starts_with("COLLECT_TOKEN_FILE=")) continue;
    environment.emplace_back(variable);
  }
  environment.push_back("COLLECT_CONNECT=" + address);
  if (!token_file.empty()) environment.push_back("COLLECT_TOKEN_FILE=" + token_file);
  return environment;
}

Result<std::unique_ptr<conformance::AgentProgram>> start(const ConformanceOptions& options,
                                                         const std::string& address) {
  const Result<std::string> program = find_program(options.program.front());
  if (!program.ok()) return program.error();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t restored;
  ::sigemptyset(&restored);
  ::sigaddset(&restored, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &restored);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program->c_str(), &actions, &attributes,
                                  c_strings(options.program).data(),
                                  c_strings(environment_for(address, options.token_file)).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return errno_error(error, *program);
  return std::unique_ptr<conformance::AgentProgram>(std::make_unique<ChildProgram>(pid));
}

Json json_of(const Rule& rule) {
  return Json{{"name", rule.name}, {"section", rule.section}, {"rule", rule.text}};
}

// The rules of what the options name; of both without it.
struct Kind {
  const char* name;
  std::vector<Rule> rules;
};

std::vector<Kind> kinds_of(const ConformanceOptions& options) {
  std::vector<Kind> kinds;
  if (options.program.empty()) kinds.push_back({"collector", conformance::collector_rules()});
  if (options.address.empty()) kinds.push_back({"agent", conformance::agent_rules()});
  return kinds;
}

int print_list(const std::vector<Kind>& kinds, bool json, std::ostream& out) {
  Json document = json_document();
  document["checks"] = Json::array();
  for (const Kind& kind : kinds) {
    std::string_view section;
    for (const Rule& rule : kind.rules) {
      if (json) {
        Json one = json_of(rule);
        one["peer"] = kind.name;
        document["checks"].push_back(std::move(one));
        continue;
      }
      if (rule.section != section) out << kind.name << ": " << (section = rule.section) << "\n";
      out << "  " << rule.name << std::string(24 - std::min<size_t>(rule.name.size(), 23), ' ')
          << rule.text << "\n";
    }
  }
  if (json) out << json_line(document);
  out.flush();
  return kOk;
}

// Empty: all names are those of checks.
std::string unknown_check(const std::vector<Kind>& kinds, const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds) {
    for (const Rule& rule : kind.rules) known.push_back(rule.name);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = nearest_word(name, known.data(), known.size());
    return "there is no check \"" + name + "\"" +
           (near.empty() ? "" : " (did you mean " + std::string(near) + "?)") +
           "; see collectctl conformance --list";
  }
  return {};
}

// Prints each verdict as it comes, or with JSON all of them at the end.
class Printer {
 public:
  Printer(bool json, std::ostream& out) : json_(json), out_(out) {
    document_["checks"] = Json::array();
  }

  void add(const Rule& rule, const Verdict& verdict) {
    ++counts_[static_cast<size_t>(verdict.outcome)];
    if (json_) {
      Json one = json_of(rule);
      one["result"] = word_of(verdict.outcome);
      add_text(one, "text", verdict.text);
      document_["checks"].push_back(std::move(one));
      return;
    }
    if (rule.section != section_) out_ << (section_ = rule.section) << "\n";
    const std::string word = word_of(verdict.outcome);
    out_ << "  " << word << std::string(8 - word.size(), ' ') << rule.name
         << (verdict.text.empty() ? "" : ": " + verdict.text) << "\n";
    out_.flush();
  }

  int finish(const std::string& peer, const std::string& subject) {
    const char* words[kOutcomes] = {"ok", "failed", "skipped"};
    if (json_) {
      Json whole = json_document();
      whole["peer"] = peer;
      whole["subject"] = subject;
      for (size_t i = 0; i < kOutcomes; ++i) whole[words[i]] = counts_[i];
      whole["checks"] = document_["checks"];
      out_ << json_line(whole);
    } else {
      for (size_t i = 0; i < kOutcomes; ++i) {
        out_ << (i == 0 ? "" : ", ") << counts_[i] << " " << words[i];
      }
      out_ << "\n";
    }
    out_.flush();
    return counts_[static_cast<size_t>(Outcome::kFailed)] == 0 ? kOk : kFailed;
  }

 private:
  const bool json_;
  std::ostream& out_;
  Json document_;
  std::string_view section_;
  size_t counts_[kOutcomes] = {};
};

}  // namespace

int conformance(const ConformanceOptions& options, std::ostream& out, std::ostream& err) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends our output, not the process
  const Answer answer{options.json, out, err};
  const auto wrong = [&answer](const std::string& sentence) {
    return answer.refuse_briefly({Code::kInvalidArgument, sentence}, kUsage);
  };
  if (!options.address.empty() && !options.program.empty()) {
    return wrong("name a collector's address or -- and a program, not both");
  }
  const std::vector<Kind> kinds = kinds_of(options);
  if (options.list) return print_list(kinds, options.json, out);
  if (options.address.empty() && options.program.empty()) {
    return wrong("name a collector's address, or a program behind --");
  }
  if (const std::string unknown = unknown_check(kinds, options.checks); !unknown.empty()) {
    return wrong(unknown);
  }
  conformance::Settings settings;
  settings.timeout = options.timeout;
  settings.only = options.checks;
  if (!options.token_file.empty()) {
    const auto token = read_token("--token-file", options.token_file);
    if (!token.ok()) return answer.refuse(token.error(), kExitNotChecked);
    settings.token = *token;
  }
  Printer printer(options.json, out);
  const auto report = [&printer](const Rule& rule, const Verdict& verdict) {
    printer.add(rule, verdict);
  };
  if (!options.address.empty()) {
    const Status done = conformance::check_collector(options.address, settings, report);
    if (done.ok()) return printer.finish("collector", options.address);
    const bool is_usage = done.error().code == Code::kInvalidArgument;
    return answer.refuse_briefly(done.error(), is_usage ? kUsage : kExitNotChecked);
  }
  for (const int number : kEnding) ::signal(number, end_program_and_self);
  const Status done = conformance::check_agent(
      [&options](const std::string& address) { return start(options, address); }, settings, report);
  if (!done.ok()) return answer.refuse_briefly(done.error(), kExitNotChecked);
  return printer.finish("agent", options.program.front());
}

}  // namespace collect::ctl
