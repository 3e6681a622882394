#include "daemon/ctl/record/program/run_environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <random>
#include <utility>

namespace collect::ctl {
namespace {

bool has_name(const std::string& entry, const std::string& name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return has_name(entry, name); });
  environment.push_back(fmt::format("{}={}", name, value));
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (has_name(entry, name)) return entry.substr(name.size() + 1);
  }
  return {};
}

// As the agent takes them: agent/AGENT.md "Settings".
Result<std::string> join_patterns(const std::vector<std::string>& patterns) {
  constexpr size_t kMost = 4095;
  std::string text;
  for (const std::string& pattern : patterns) {
    if (pattern.empty() || pattern.find(';') != std::string::npos) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("\"{}\" is no pattern of functions: it is empty or has a ;", pattern)};
    }
    text += (text.empty() ? "" : ";") + pattern;
  }
  if (text.size() <= kMost) return text;
  return Error{Code::kInvalidArgument,
               fmt::format("the patterns of --only or --except have {} bytes, at most {} are taken",
                           text.size(), kMost)};
}

}  // namespace

Result<uint32_t> sample_hz(std::string_view text) {
  constexpr uint32_t kMost = 10'000;  // as the agent takes it
  std::string_view digits = text;
  uint32_t unit = 1;
  if (digits.ends_with("Hz")) digits.remove_suffix(2);
  if (digits.ends_with('k')) {
    digits.remove_suffix(1);
    unit = 1000;
  }
  const bool may_end = digits.size() == text.size() || text.ends_with("Hz");
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!may_end || error != std::errc() || end != digits.data() + digits.size() || number == 0 ||
      number > kMost / unit) {
    return Error{Code::kInvalidArgument,
                 fmt::format("--sample {}: a number of samples in a second, as 1kHz or 999Hz, at "
                             "most 10kHz",
                             text)};
  }
  return number * unit;
}

Status set_recording(std::vector<std::string>& environment, const AgentSettings& settings) {
  set(environment, "COLLECT_TAG", settings.tag);
  if (settings.detail) set(environment, "COLLECT_DETAIL", *settings.detail);
  if (settings.buffer_mb) {
    set(environment, "COLLECT_BUFFER_MB", std::to_string(*settings.buffer_mb));
  }
  if (settings.max_depth) {
    set(environment, "COLLECT_MAX_DEPTH", std::to_string(*settings.max_depth));
  }
  if (settings.max_rate) set(environment, "COLLECT_MAX_RATE", std::to_string(*settings.max_rate));
  if (settings.longer_than) set(environment, "COLLECT_LONGER_THAN", *settings.longer_than);
  for (const auto& [name, patterns] :
       {std::pair("COLLECT_ONLY", &settings.only), std::pair("COLLECT_EXCEPT", &settings.except)}) {
    if (patterns->empty()) continue;
    const auto joined = join_patterns(*patterns);
    if (!joined.ok()) return joined.error();
    set(environment, name, *joined);
  }
  if (settings.max_time) {
    std::string value = *settings.max_time;
    if (settings.max_time_since_ns != 0) value += fmt::format("@{}", settings.max_time_since_ns);
    set(environment, "COLLECT_MAX_TIME", value);
  }
  if (settings.max_bytes) {
    set(environment, "COLLECT_MAX_SIZE", std::to_string(*settings.max_bytes));
  }
  if (!settings.plans.empty()) set(environment, "COLLECT_PLANS", settings.plans);
  if (settings.start_idle) set(environment, "COLLECT_START", "idle");
  if (settings.no_switches) set(environment, "COLLECT_SWITCHES", "off");
  if (settings.libcalls) set(environment, "COLLECT_LIBCALLS", *settings.libcalls);
  if (settings.sample) {
    const auto hz = sample_hz(*settings.sample);
    if (!hz.ok()) return hz.error();
    set(environment, "COLLECT_SAMPLE", std::to_string(*hz));
  }
  if (settings.atf_version) {
    set(environment, "COLLECT_ATF_VERSION", std::to_string(*settings.atf_version));
  }
  return {};
}

Result<std::vector<std::string>> agent_environment(const std::vector<std::string>& base,
                                                   const AgentSettings& settings) {
  if (settings.library.find_first_of(": \t\n") != std::string::npos) {
    return Error{Code::kInvalidArgument,
                 fmt::format("LD_PRELOAD cannot hold the path \"{}\": spaces and colons separate "
                             "its entries; install the agent elsewhere",
                             settings.library)};
  }
  std::vector<std::string> environment = base;
  const std::string preloaded = value_of(base, "LD_PRELOAD");
  set(environment, "LD_PRELOAD",
      preloaded.empty() ? settings.library : fmt::format("{}:{}", settings.library, preloaded));
  // An agent has one role; a caller's own COLLECT_LISTEN would win over ours.
  std::erase_if(environment,
                [](const std::string& entry) { return has_name(entry, "COLLECT_LISTEN"); });
  set(environment, "COLLECT_CONNECT", settings.connect);
  std::erase_if(environment, [&](const std::string& entry) {
    return has_name(entry, "COLLECT_RUN") || has_name(entry, "COLLECT_RUN_KEY") ||
           (!settings.run_key.empty() && has_name(entry, "COLLECT_TOKEN_FILE"));
  });
  if (!settings.run.empty()) set(environment, "COLLECT_RUN", settings.run);
  if (!settings.run_key.empty()) set(environment, "COLLECT_RUN_KEY", settings.run_key);
  if (settings.full || value_of(base, "COLLECT_FULL").empty()) {
    set(environment, "COLLECT_FULL", settings.full.value_or("wait"));
  }
  // A process of its own ships what a program recorded before it crashed.
  if (settings.drain || value_of(base, "COLLECT_DRAIN").empty()) {
    set(environment, "COLLECT_DRAIN", settings.drain.value_or("process"));
  }
  for (const char* name : {"COLLECT_LIBCALLS", "COLLECT_SWITCHES"}) {
    if (value_of(base, name).empty()) set(environment, name, "on");
  }
  COLLECT_TRY(set_recording(environment, settings));
  if (settings.only_child_of != 0) {
    set(environment, "COLLECT_CHILD_OF", std::to_string(settings.only_child_of));
  }
  return environment;
}

bool waits_when_full(const std::vector<std::string>& environment) {
  return value_of(environment, "COLLECT_FULL") == "wait";
}

bool starts_idle(const std::vector<std::string>& environment) {
  return value_of(environment, "COLLECT_START") == "idle";
}

bool ends_by_time(const std::vector<std::string>& environment) {
  return !value_of(environment, "COLLECT_MAX_TIME").empty();
}

bool limits_rates(const std::vector<std::string>& environment) {
  return !value_of(environment, "COLLECT_MAX_RATE").empty();
}

bool filters_functions(const std::vector<std::string>& environment) {
  return !value_of(environment, "COLLECT_ONLY").empty() ||
         !value_of(environment, "COLLECT_EXCEPT").empty();
}

bool records_one_process(const std::vector<std::string>& environment) {
  return !value_of(environment, "COLLECT_CHILD_OF").empty();
}

bool drains_by_process(const std::vector<std::string>& environment) {
  return value_of(environment, "COLLECT_DRAIN") == "process";
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

std::string given_tag(const std::vector<std::string>& environment) {
  return value_of(environment, "COLLECT_TAG");
}

std::string new_run_tag() {
  std::random_device random;
  char text[32];
  std::snprintf(text, sizeof(text), "run-%08x%08x", random(), random());
  return text;
}

}  // namespace collect::ctl
