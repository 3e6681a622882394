#include "daemon/ctl/command_line/command.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "daemon/ctl/control/messages/text.h"
#include "storage/select/time_words.h"

namespace collect::ctl {
namespace {

constexpr char kCollectorGroup[] = "Where the collector is";

CLI::Validator validator(TextCheck check) {
  return CLI::Validator(std::move(check), "");
}

// CLI11 itself takes "-1" for the largest number.
std::string check_whole_number(std::string& text) {
  const bool is_one = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return is_one ? std::string() : text + " is not a whole number";
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  return fmt::format("{{{}}}", list);
}

Command made_command(CLI::App& app, ParsedLine& line) {
  app.set_help_flag("-h,--help", "Print this help");
  app.footer("");  // not the one of the whole program
  return Command(&app, line);
}

}  // namespace

Argument Argument::required() const {
  if (option_ != nullptr) option_->required();
  return *this;
}

Argument Argument::needs(Argument other) const {
  if (option_ != nullptr) option_->needs(other.option_);
  return *this;
}

Argument Argument::excludes(Argument other) const {
  if (option_ != nullptr) option_->excludes(other.option_);
  return *this;
}

bool Argument::is_given() const {
  return option_->count() > 0;
}

std::string Argument::name() const {
  return option_->get_name();
}

Command Command::subcommand(const char* name, const char* what) const {
  if (app_ == nullptr) return *this;
  app_->require_subcommand(1);
  return made_command(*app_->add_subcommand(name, what), *line_);
}

Argument Command::positional(const char* name, std::string& field, const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  return Argument(app_->add_option(name, field, help));
}

Argument Command::positional(const char* name, std::vector<std::string>& field,
                             const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  return Argument(app_->add_option(name, field, help));
}

Argument Command::flag(const char* names, bool& field, const std::string& help) const {
  if (app_ == nullptr) return Argument(nullptr);
  return Argument(app_->add_flag(names, field, help));
}

Argument Command::flag(const char* names, const char* value, std::vector<std::string>& field,
                       const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  return Argument(app_->add_flag(names, field, help)->type_name(value));
}

Argument Command::option(const char* names, const char* value, TextField field,
                         const std::string& help, TextCheck check) const {
  if (app_ == nullptr) return Argument(nullptr);
  CLI::Option* option =
      std::visit([&](auto* text) { return app_->add_option(names, *text, help); }, field);
  option->type_name(value);
  if (check) option->transform(validator(std::move(check)));
  return Argument(option);
}

Argument Command::option(const char* names, const char* value, std::vector<std::string>& field,
                         const std::string& help, TextCheck check) const {
  if (app_ == nullptr) return Argument(nullptr);
  CLI::Option* option = app_->add_option(names, field, help)->type_name(value);
  option->allow_extra_args(false);
  if (check) option->check(validator(std::move(check)));
  return Argument(option);
}

Argument Command::number(const char* names, const char* value, NumberField field, const char* help,
                         std::optional<Range> range) const {
  if (app_ == nullptr) return Argument(nullptr);
  CLI::Option* option =
      std::visit([&](auto* number) { return app_->add_option(names, *number, help); }, field);
  option->type_name(value);
  if (range) {
    option->check(CLI::Range(range->least, range->most).description(""));
  } else {
    option->check(validator(check_whole_number));
  }
  return Argument(option);
}

Argument Command::any_number(const char* names, const char* value, int64_t& field,
                             const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  return Argument(app_->add_option(names, field, help)->type_name(value));
}

Argument Command::duration(const char* names, std::chrono::nanoseconds& field,
                           const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  const auto take = [&field](const std::string& text) {
    field = *select::parse_duration(text);  // it was checked
  };
  const auto check = [](std::string& text) {
    const auto parsed = select::parse_duration(text);
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  CLI::Option* option = app_->add_option_function<std::string>(names, take, help);
  return Argument(option->type_name("DURATION")->check(validator(check)));
}

Argument Command::size(const char* names, std::optional<uint64_t>& field, const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  const auto check = [](std::string& text) {
    const auto parsed = parse_size(text);
    if (!parsed.ok()) return parsed.error().message;
    text = std::to_string(*parsed);
    return std::string();
  };
  return Argument(
      app_->add_option(names, field, help)->type_name("BYTES")->transform(validator(check)));
}

Argument Command::word(const char* names, const char* value, TextField field,
                       const std::vector<std::string>& words, const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  CLI::Option* option =
      std::visit([&](auto* text) { return app_->add_option(names, *text, help); }, field);
  return Argument(option->type_name(value)->check(CLI::IsMember(words)));
}

Argument Command::choice(const char* names, const char* value,
                         const std::vector<std::string>& words, std::function<void(size_t)> choose,
                         const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  const auto take = [words, choose = std::move(choose)](const std::string& text) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) choose(i);
    }
  };
  const std::string list = listed(words);
  const auto check = [words, list](std::string& text) {
    const bool is_one = std::find(words.begin(), words.end(), text) != words.end();
    return is_one ? std::string() : fmt::format("{} not in {}", text, list);
  };
  CLI::Option* option = app_->add_option_function<std::string>(names, take, help);
  return Argument(option->type_name(value)->check(CLI::Validator(check, list)));
}

Argument Command::atf_version(std::optional<uint32_t>& field, const char* help) const {
  if (app_ == nullptr) return Argument(nullptr);
  CLI::Option* option = app_->add_option("--atf-version", field, help)->type_name("VERSION");
  return Argument(option->check(CLI::IsMember({1, 2})));
}

std::vector<Argument> Command::arguments() const {
  std::vector<Argument> all;
  if (app_ == nullptr) return all;
  for (CLI::Option* option : app_->get_options()) all.push_back(Argument(option));
  return all;
}

void Command::json(const char* help) const {
  if (app_ == nullptr) return;
  app_->add_flag("--json", line_->invocation.json, help);
}

void Command::collector() const {
  if (app_ == nullptr) return;
  ControlTarget& control = line_->invocation.control;
  const auto add = [this](const char* names, std::string& field, const char* value,
                          const char* what) {
    app_->add_option(names, field, what)->type_name(value)->group(kCollectorGroup);
  };
  add("--control", control.address, "ADDRESS",
      "Address of the collector: host:port or unix:/path; default: see collectctl help options");
  add("--tls-ca", control.tls_ca, "FILE",
      "CA certificate (PEM) that signed the collector's certificate; enables TLS");
  add("--tls-certificate", control.tls_certificate, "FILE",
      "Client certificate (PEM), if the collector asks for one");
  add("--tls-key", control.tls_key, "FILE", "Private key (PEM) of --tls-certificate");
  add("--tls-name", control.tls_name, "NAME",
      "Name in the collector's certificate, if its address has another");
  add("--token-file", control.token_file, "FILE",
      "File with the token for the collector; needs TLS");
}

void Command::footer(const std::string& text) const {
  if (app_ == nullptr) return;
  app_->footer(text);
}

void Command::run(std::function<int(const Invocation&)> run,
                  std::function<std::string()> check) const {
  if (app_ == nullptr) return;
  app_->final_callback([line = line_, run = std::move(run), check = std::move(check)] {
    const std::string wrong = check ? check() : "";
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
    line->run = [line, run] { return run(line->invocation); };
  });
}

void Command::run_with_signals(std::function<int(const Invocation&)> run,
                               std::function<std::string()> check) const {
  this->run(std::move(run), [line = line_, check = std::move(check)]() -> std::string {
    line->takes_signals = true;
    return check ? check() : "";
  });
}

Command CommandGroup::add(const char* name, const char* what) const {
  CLI::App* command = app_->add_subcommand(name, what);
  command->group(title_);
  return name == named_ ? made_command(*command, *line_) : Command(nullptr, *line_);
}

}  // namespace collect::ctl
