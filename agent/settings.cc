#include "agent/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/text.h"
#include "formats/core/text/environment_names.h"

#if !defined(__APPLE__)
#include <sys/auxv.h>
#endif

namespace collect::agent {

bool is_privileged() {
#if defined(__APPLE__)
  return issetugid() != 0;
#else
  return getauxval(AT_SECURE) != 0;
#endif
}

namespace {

// NAME=value, each terminated, up to an empty one; null: the environment.
const char* given_variables = nullptr;

const char* variable_in(const char* block, const char* name) {
  const size_t bytes = strlen(name);
  for (const char* at = block; *at != '\0'; at += strlen(at) + 1) {
    if (strncmp(at, name, bytes) == 0 && at[bytes] == '=') return at + bytes + 1;
  }
  return nullptr;
}

// The only place where the agent reads its environment.
const char* variable(const char* name) {
  if (is_privileged()) return nullptr;
  return given_variables != nullptr ? variable_in(given_variables, name) : getenv(name);
}

template <size_t kBytes>
bool take_text(const char* name, char (&to)[kBytes], bool* given = nullptr) {
  const char* value = variable(name);
  if (given != nullptr) *given = value != nullptr && value[0] != '\0';
  if (value == nullptr) return true;
  const size_t bytes = strnlen(value, kBytes);
  if (bytes == kBytes) return false;
  memcpy(to, value, bytes + 1);
  return true;
}

bool take_number(const char* name, uint32_t low, uint32_t high, uint32_t& to) {
  const char* value = variable(name);
  if (value == nullptr || value[0] == '\0') return true;
  uint64_t number = 0;
  for (const char* at = value; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9' || at - value > 9) return false;
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  }
  if (number < low || number > high) return false;
  to = static_cast<uint32_t>(number);
  return true;
}

// Decimal digits, and nothing else.
bool parse_number(const char* text, size_t bytes, uint64_t most, uint64_t& to) {
  uint64_t number = 0;
  for (size_t at = 0; at < bytes; ++at) {
    if (text[at] < '0' || text[at] > '9') return false;
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    if (number > (most - digit) / 10) return false;
    number = number * 10 + digit;
  }
  to = number;
  return bytes != 0;
}

// A number and its unit: "5us".
bool parse_duration(const char* text, size_t bytes, uint64_t most_ns, uint64_t& to) {
  struct Unit {
    const char* name;
    uint64_t ns;
  };
  static constexpr Unit kUnits[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  size_t digits = 0;
  while (digits < bytes && text[digits] >= '0' && text[digits] <= '9') ++digits;
  for (const Unit& unit : kUnits) {
    const size_t unit_bytes = strlen(unit.name);
    if (bytes - digits != unit_bytes || memcmp(text + digits, unit.name, unit_bytes) != 0) continue;
    uint64_t number = 0;
    if (!parse_number(text, digits, most_ns / unit.ns, number) || number == 0) return false;
    to = number * unit.ns;
    return true;
  }
  return false;
}

bool take_duration(const char* name, uint64_t most_ns, uint64_t& to) {
  const char* value = variable(name);
  return value == nullptr || value[0] == '\0' || parse_duration(value, strlen(value), most_ns, to);
}

// The process number of the only parent whose children are recorded.
bool take_parent(Settings& settings) {
  uint64_t parent = 0;
  const char* value = variable("COLLECT_CHILD_OF");
  if (value == nullptr || value[0] == '\0') return true;
  if (!parse_number(value, strlen(value), INT32_MAX, parent) || parent == 0) return false;
  settings.child_of = static_cast<int32_t>(parent);
  settings.this_process_only = true;
  return true;
}

// A number and its unit, perhaps with the moment from which it counts: "10s", "10s@81000000000".
bool take_max_time(Settings& settings) {
  constexpr char kName[] = "COLLECT_MAX_TIME";
  const char* value = variable(kName);
  if (value == nullptr || value[0] == '\0') return true;
  const char* const since = strchr(value, '@');
  const size_t bytes = since == nullptr ? strlen(value) : static_cast<size_t>(since - value);
  if (!parse_duration(value, bytes, kMaxMaxTimeNs, settings.max_time_ns)) return false;
  return since == nullptr ||
         parse_number(since + 1, strlen(since + 1), UINT64_MAX, settings.max_time_since_ns);
}

// Bytes, or a number with K, M or G: powers of 1024.
bool take_size(const char* name, uint64_t most, uint64_t& to) {
  const char* value = variable(name);
  if (value == nullptr || value[0] == '\0') return true;
  static constexpr char kUnits[] = "KMG";
  size_t digits = strlen(value);
  uint32_t shift = 0;
  const char* const unit = strchr(kUnits, value[digits - 1]);
  if (unit != nullptr) {
    --digits;
    shift = 10 * static_cast<uint32_t>(unit - kUnits + 1);
  }
  uint64_t number = 0;
  if (!parse_number(value, digits, most >> shift, number) || number == 0) return false;
  to = number << shift;
  return true;
}

// The place of the variable's value in `words`; `fallback` when it is not set, `count` when it is
// none of them.
uint32_t take_word(const char* name, const char* const* words, uint32_t count, uint32_t fallback) {
  const char* value = variable(name);
  if (value == nullptr || value[0] == '\0') return fallback;
  uint32_t at = 0;
  while (at < count && strcmp(value, words[at]) != 0) ++at;
  return at;
}

const char* take_addresses(Settings& settings) {
  bool given = false;
  if (!take_text("COLLECT_CONNECT", settings.address, &given)) {
    return "COLLECT_CONNECT is too long";
  }
  if (given) {
    settings.role = Role::kConnect;
    return nullptr;
  }
  if (!take_text("COLLECT_LISTEN", settings.address, &given)) return "COLLECT_LISTEN is too long";
  if (given) settings.role = Role::kListen;
  return nullptr;
}

const char* take_words(Settings& settings) {
  static constexpr const char* kFull[] = {"drop", "overwrite", "wait"};
  static constexpr const char* kDetail[] = {"off", "armed", "on"};
  static constexpr const char* kStart[] = {"recording", "idle"};
  static constexpr const char* kDrain[] = {"thread", "process"};
  static constexpr const char* kSwitches[] = {"off", "on"};  // as kDrain, if it is not set
  const uint32_t full = take_word("COLLECT_FULL", kFull, 3, 0);
  if (full == 3) return "COLLECT_FULL must be drop, overwrite or wait";
  const uint32_t detail = take_word("COLLECT_DETAIL", kDetail, 3, 0);
  if (detail == 3) return "COLLECT_DETAIL must be off, armed or on";
  const uint32_t start = take_word("COLLECT_START", kStart, 2, 0);
  if (start == 2) return "COLLECT_START must be recording or idle";
  const uint32_t drain = take_word("COLLECT_DRAIN", kDrain, 2, 0);
  if (drain == 2) return "COLLECT_DRAIN must be thread or process";
  const uint32_t switches = take_word("COLLECT_SWITCHES", kSwitches, 2, drain);
  if (switches == 2) return "COLLECT_SWITCHES must be off or on";
  settings.switches = switches == 1;
  settings.drain = static_cast<DrainBy>(drain);
  if (settings.drain == DrainBy::kProcess) settings.exit_flush_ms = kProcessFlushMs;
  settings.full = static_cast<FullPolicy>(full);
  settings.detail = static_cast<uint8_t>(detail);
  settings.start_recording = start == 0;
  return nullptr;
}

}  // namespace

Settings default_settings;

bool settings_from_environment(Settings& settings, const char** error) {
  const char* log = variable("COLLECT_LOG");
  settings.log = log != nullptr && log[0] != '\0' && strcmp(log, "0") != 0;
  // Before what may be wrong: the run reports that.
  const bool fits =
      take_text("COLLECT_RUN", settings.run) && take_text("COLLECT_RUN_KEY", settings.run_key);
  *error = fits ? take_addresses(settings) : "COLLECT_RUN or COLLECT_RUN_KEY is too long";
  if (*error == nullptr) *error = take_words(settings);
  if (*error != nullptr) return false;
  uint32_t version = settings.atf_version;
  if (!take_text("COLLECT_TOKEN_FILE", settings.token_file)) {
    *error = "COLLECT_TOKEN_FILE is too long";
  } else if (!take_text("COLLECT_TLS_CA", settings.tls_ca)) {
    *error = "COLLECT_TLS_CA is too long";
  } else if (!take_text("COLLECT_TLS_CERTIFICATE", settings.tls_certificate)) {
    *error = "COLLECT_TLS_CERTIFICATE is too long";
  } else if (!take_text("COLLECT_TLS_KEY", settings.tls_key)) {
    *error = "COLLECT_TLS_KEY is too long";
  } else if (!take_text("COLLECT_TAG", settings.tag)) {
    *error = "COLLECT_TAG is too long";
  } else if (!take_number("COLLECT_BUFFER_MB", kMinBufferMb, kMaxBufferMb, settings.buffer_mb)) {
    *error = "COLLECT_BUFFER_MB must be a number from 1 to 16384";
  } else if (!take_text("COLLECT_SPOOL", settings.spool)) {
    *error = "COLLECT_SPOOL is too long";
  } else if (!take_text("COLLECT_PLANS", settings.plans)) {
    *error = "COLLECT_PLANS is too long";
  } else if (!take_text("COLLECT_LIBCALLS", settings.library_calls)) {
    *error = "COLLECT_LIBCALLS is too long";
  } else if (!take_number("COLLECT_SPOOL_MB", 1, kMaxSpoolMb, settings.spool_mb)) {
    *error = "COLLECT_SPOOL_MB must be a number from 1 to 65536";
  } else if (!take_number("COLLECT_ATF_VERSION", 1, 2, version)) {
    *error = "COLLECT_ATF_VERSION must be 1 or 2";
  } else if (!take_number("COLLECT_MAX_DEPTH", 1, kMaxMaxDepth, settings.max_depth)) {
    *error = "COLLECT_MAX_DEPTH must be a number from 1 to 1000000";
  } else if (!take_duration("COLLECT_LONGER_THAN", kMaxLongerThanNs, settings.longer_than_ns)) {
    *error = "COLLECT_LONGER_THAN must be a time such as 5us (ns, us, ms, s), at most 3600s";
  } else if (!take_number("COLLECT_MAX_RATE", 1, kMaxMaxRate, settings.max_rate)) {
    *error = "COLLECT_MAX_RATE must be a number from 1 to 1000000000";
  } else if (!take_number("COLLECT_SAMPLE", 1, kMaxSampleHz, settings.sample_hz)) {
    *error = "COLLECT_SAMPLE must be a number from 1 to 10000";
  } else if (!take_text("COLLECT_ONLY", settings.only)) {
    *error = "COLLECT_ONLY is too long";
  } else if (!take_text("COLLECT_EXCEPT", settings.except)) {
    *error = "COLLECT_EXCEPT is too long";
  } else if (!take_max_time(settings)) {
    *error = "COLLECT_MAX_TIME must be a time such as 10s (ns, us, ms, s)";
  } else if (!take_size("COLLECT_MAX_SIZE", kMaxMaxBytes, settings.max_bytes)) {
    *error = "COLLECT_MAX_SIZE must be a number of bytes, or one with K, M or G";
  } else if (!take_parent(settings)) {
    *error = "COLLECT_CHILD_OF must be the number of a process";
  } else if (!take_number("COLLECT_EXIT_FLUSH_MS", 0, 600000, settings.exit_flush_ms)) {
    *error = "COLLECT_EXIT_FLUSH_MS must be a number from 0 to 600000";
  }
  settings.atf_version = static_cast<uint8_t>(version);
  if (strcmp(settings.library_calls, "off") == 0) settings.library_calls[0] = '\0';
  return *error == nullptr;
}

bool settings_from_block(const char* block, size_t bytes, Settings& settings, const char** error) {
  if (bytes < 2 || block[bytes - 1] != '\0' || block[bytes - 2] != '\0') {
    *error = "the settings are not terminated";
    return false;
  }
  given_variables = block;
  const bool taken = settings_from_environment(settings, error);
  given_variables = nullptr;
  return taken;
}

void warn_of_unknown_variables(void (*say)(const char* sentence)) {
  if (is_privileged()) return;
  uint32_t said = 0;
  for_each_unknown_variable(environ, [&](const UnknownVariable& unknown) {
    if (said++ >= kMaxUnknownVariables) return;
    char sentence[3 * (kMaxShownVariable + 1)];
    Text text(sentence, sizeof sentence);
    char part[kMaxShownVariable + 1];
    put_unknown_variable(
        unknown,
        [&](std::string_view words) {
          (void)copy_printable(part, sizeof part, words.data(), words.size());
          text.add(part);
        },
        [](std::string_view name) { return name; });
    say(sentence);
  });
}

}  // namespace collect::agent
