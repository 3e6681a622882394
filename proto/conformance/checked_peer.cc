#include "proto/conformance/checked_peer.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "formats/core/text/nearest_word.h"
#include "formats/core/text/printable.h"
#include "proto/conformance/agents/child_program.h"
#include "proto/conformance/conformance.h"
#include "proto/wire/proof.h"

namespace collect::conformance {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were added

constexpr int kOk = 0, kFailed = 1;
constexpr size_t kOutcomes = 3;
constexpr char kName[] = "collect-conformance";

// The dialect of collectctl --json (deploy/guide/json.md).
Json json_document() {
  return Json{{"version", 1}};
}

std::string json_line(const Json& document) {
  return printable_json(document.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Json error_json(const Error& error) {
  std::string code;
  for (const char c : code_name(error.code)) {
    if (c == '/') continue;  // of "I/O error"
    code += c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return Json{{"code", code}, {"message", error.message}};
}

// The token of the file, without its line end.
Result<std::string> read_token(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string token(wire::kMaxTokenBytes + 2, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(file.gcount()));
  if (token.empty()) return errno_error(errno == 0 ? EIO : errno, path);
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  const bool is_printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
  if (is_printable && !token.empty() && token.size() <= wire::kMaxTokenBytes) return token;
  return Error{Code::kInvalidArgument,
               fmt::format("{}: a token has 1 to {} printable characters on one line", path,
                           wire::kMaxTokenBytes)};
}

const char* word_of(Outcome outcome) {
  if (outcome == Outcome::kOk) return "ok";
  return outcome == Outcome::kFailed ? "failed" : "skipped";
}

Json json_of(const Rule& rule) {
  return Json{{"name", rule.name}, {"section", rule.section}, {"rule", rule.text}};
}

// The rules of what the options name; of both without it.
struct Kind {
  const char* name;
  std::vector<Rule> rules;
};

std::vector<Kind> kinds_of(const PeerOptions& options) {
  std::vector<Kind> kinds;
  if (options.program.empty()) kinds.push_back({"collector", collector_rules()});
  if (options.address.empty()) kinds.push_back({"agent", agent_rules()});
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
    return fmt::format("there is no check \"{}\"{}; see collect-conformance --list", name,
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
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
      if (!verdict.text.empty()) one["text"] = verdict.text;
      document_["checks"].push_back(std::move(one));
      return;
    }
    if (rule.section != section_) out_ << (section_ = rule.section) << "\n";
    const std::string word = word_of(verdict.outcome);
    out_ << "  " << word << std::string(8 - word.size(), ' ') << rule.name
         << (verdict.text.empty() ? "" : ": " + printable_sentence(verdict.text)) << "\n";
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

int refuse(const Error& error, int exit_code, bool json, std::ostream& out, std::ostream& err) {
  if (!json) {
    err << kName << ": " << printable_sentence(error.message) << "\n" << std::flush;
    return exit_code;
  }
  Json document = json_document();
  document["error"] = error_json(error);
  out << json_line(document) << std::flush;
  return exit_code;
}

int check_peer(const PeerOptions& options, std::ostream& out, std::ostream& err) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends our output, not the process
  const auto failed = [&](const Error& error, int exit_code) {
    return refuse(error, exit_code, options.json, out, err);
  };
  const auto wrong = [&failed](const std::string& sentence) {
    return failed({Code::kInvalidArgument, sentence}, kExitUsage);
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
  Settings settings;
  settings.timeout = options.timeout;
  settings.only = options.checks;
  if (!options.token_file.empty()) {
    const auto token = read_token(options.token_file);
    if (!token.ok()) {
      return failed({token.code(), "--token-file: " + token.error().message}, kExitNotChecked);
    }
    settings.token = *token;
  }
  Printer printer(options.json, out);
  const auto report = [&printer](const Rule& rule, const Verdict& verdict) {
    printer.add(rule, verdict);
  };
  if (!options.address.empty()) {
    const Status done = check_collector(options.address, settings, report);
    if (done.ok()) return printer.finish("collector", options.address);
    return failed(done.error(),
                  done.code() == Code::kInvalidArgument ? kExitUsage : kExitNotChecked);
  }
  end_program_on_signals();
  const Status done = check_agent(
      [&options](const std::string& address) {
        return start_program(options.program, address, options.token_file);
      },
      settings, report);
  if (!done.ok()) return failed(done.error(), kExitNotChecked);
  return printer.finish("agent", options.program.front());
}

}  // namespace collect::conformance
