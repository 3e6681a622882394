// The one translation unit that knows CLI11.
#include "daemon/config.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/attach/attach.h"
#include "daemon/attach/usbmux/usbmux_address.h"
#include "daemon/ingest/link/address.h"
#include "daemon/ingest/link/limits.h"
#include "daemon/principal/local_access.h"
#include "daemon/symbolize/limits.h"
#include "daemon/upload/store_request.h"
#include "formats/core/text/nearest_word.h"
#include "formats/core/version.h"

namespace collect::daemon {
namespace {

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

constexpr size_t kHelpColumn = 38;  // where the words of --help begin

std::string out_of(uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return {};
  return fmt::format("{} is not within {} and {}", value, low, high);
}

std::string address_fault(const std::string& text) {
  const auto address = parse_address(text);
  return address.ok() ? std::string() : address.error().message;
}

std::string one_of(const std::string& value, std::initializer_list<std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    if (value == word) return {};
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  return fmt::format("\"{}\" is not one of {}", value, list);
}

// What a lookup of symbols takes.
std::string paths_fault(const std::vector<std::string>& paths, bool absolute) {
  constexpr size_t kMostPaths = 64;
  if (paths.size() > kMostPaths) return fmt::format("more than {} directories", kMostPaths);
  for (const std::string& path : paths) {
    if (path.empty() || path.size() >= symbolize::kMaxPathBytes) return "a path has a bad length";
    if (absolute && path.front() != '/') return path + " is not an absolute path";
  }
  return {};
}

// CLI11 says some things in several lines; a start that fails says one.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What represents the value in --help; null: the type says it.
const char* value_name(std::string_view key) {
  if (key == "root" || key == "perfetto_ui" || key.ends_with("_directories") ||
      key.ends_with("_roots"))
    return "DIRECTORY";
  if (key == "ingest" || key == "control" || key == "attach" || key == "metrics") return "ADDRESS";
  if (key == "web") return "ADDRESS=off";
  if (key == "store" || key == "store_endpoint") return "URL";
  if (key == "store_region") return "NAME";
  if (key == "store_bytes_per_s") return "BYTES";
  if (key == "keep_local") return "always|until_committed|DAYS";
  if (key == "store_tables") return "off|functions|all";
  if (key.ends_with("_file") || key.starts_with("tls_")) return "FILE";
  if (key.ends_with("_bytes")) return "BYTES";
  if (key.ends_with("_ms")) return "MS";
  if (key.ends_with("_s")) return "SECONDS";
  if (key == "durability") return "os|fsync";
  if (key == "local_access") return "user|group:NAME|any";
  if (key == "adb" || key == "usbmux") return "ADDRESS";
  if (key == "page_codecs") return "auto|off";
  if (key == "log_level") return "trace|debug|info|warn|error|off";
  return nullptr;
}

struct FlagsOnly {
  std::string config_file;
  int ready_fd = -1;
  bool print_config = false;
  bool help = false;
  bool version = false;
};

void declare_flags(CLI::App& app, Config& config, FlagsOnly& flags) {
  app.set_help_flag();
  app.get_formatter()->column_width(kHelpColumn);
  app.add_flag("-h,--help", flags.help, "print this help and exit");
  app.add_flag("--version", flags.version, "print the version and exit");
  app.add_option("--config", flags.config_file, "TOML file with any of the keys below")
      ->type_name("FILE");
  app.add_flag("--print-config", flags.print_config, "print the effective settings and exit");
  app.add_option("--ready-fd", flags.ready_fd,
                 "descriptor to which one JSON line is written when the daemon is ready")
      ->type_name("N");
  each_key(config, [&app](const char* key, const char* help, auto& field) {
    CLI::Option* const option = app.add_option(flag_of(key), field, help);
    if (const char* name = value_name(key); name != nullptr) option->type_name(name);
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool>) {
      option->type_name("true|false")->default_str(field ? "true" : "false");
    } else if (std::string_view(key) == "web") {
      option->expected(0, 1);  // an empty text for the flag alone, as it has no captured default
    } else if constexpr (!std::is_same_v<Field, std::vector<std::string>>) {
      option->capture_default_str();
    }
  });
}

// The first flag that there is not, with the one that may have been meant; empty: there is none.
std::string unknown_flag(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view word = argument.substr(0, argument.find('='));
    if (!word.starts_with("--") || app.get_option_no_throw(std::string(word)) != nullptr) continue;
    const std::string_view near = nearest_word(word.substr(2), known.data(), known.size());
    return fmt::format("there is no option {}{}", word,
                       near.empty() ? "" : fmt::format(" (did you mean --{}?)", near));
  }
  return "";
}

// One pass over the flags; `config` keeps what no flag names.
Status parse_flags(int argc, const char* const* argv, Config& config, FlagsOnly& flags,
                   std::string* help) {
  CLI::App app{"collectord: stores what agents record in session directories", "collectord"};
  declare_flags(app, config, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_flag(app, argc, argv);
    return Error{Code::kInvalidArgument,
                 (unknown.empty() ? first_line(error.what()) : unknown) + " (see --help)"};
  }
  const CLI::Option* const web = app.get_option("--web");
  if (web->count() != 0 && config.web.empty()) config.web = kDefaultWeb;
  if (help != nullptr) *help = app.help();
  return {};
}

std::string number_fault(std::string_view key, const Config& config) {
  if (key == "heartbeat_ms") {
    return out_of(config.heartbeat_ms, static_cast<uint64_t>(ingest::kMinHeartbeat.count()),
                  static_cast<uint64_t>(ingest::kMaxHeartbeat.count()));
  }
  if (key == "resume_ms") return out_of(config.resume_ms, 0, 7ull * 24 * 3600 * 1000);
  if (key == "max_connections") return out_of(config.max_connections, 2, 1u << 20);
  if (key == "sessions_per_agent") return out_of(config.sessions_per_agent, 1, UINT32_MAX);
  if (key == "max_connections_per_address") {
    return out_of(config.max_connections_per_address, 2, 1u << 20);
  }
  if (key == "threads_per_agent") {
    return out_of(config.threads_per_agent, 1, storage::kMaxThreads);
  }
  constexpr uint64_t kMost = 1ull << 40;
  if (key == "max_unsealed_sessions") {
    return out_of(config.max_unsealed_sessions, ingest::kLeastSessions, kMost);
  }
  if (key == "max_unsealed_files") {
    return out_of(config.max_unsealed_files, ingest::kLeastFiles, kMost);
  }
  if (key == "max_memory_bytes") {
    return out_of(config.max_memory_bytes, ingest::kLeastMemory, kMost);
  }
  return {};
}

}  // namespace

std::string value_fault(std::string_view key, const Config& config) {
  if (key == "ingest") return address_fault(config.ingest);
  if (key == "web" && config.web != "off") return address_fault(config.web);
  if (key == "metrics" && config.metrics != "off") return address_fault(config.metrics);
  if (key == "store" && config.store != "off") {
    const auto url = upload::parse_store_url(config.store);
    if (!url.ok()) return url.error().message;
    return url->below.empty() ? "" : config.store + ": a whole bucket is wanted, s3://BUCKET";
  }
  if (key == "keep_local") {
    const auto keep = upload::parse_keep_local(config.keep_local);
    return keep.ok() ? std::string() : keep.error().message;
  }
  if (key == "store_tables") {
    const auto tables = upload::parse_store_tables(config.store_tables);
    return tables.ok() ? std::string() : tables.error().message;
  }
  if (key == "local_access") {
    const Status holds = principal::LocalAccess::check_syntax(config.local_access);
    return holds.ok() ? std::string() : holds.error().message;
  }
  if (key == "attach") {
    for (const std::string& address : config.attach) {
      std::string fault = attach::is_device_address(address) ? attach::device_address_fault(address)
                                                             : address_fault(address);
      if (!fault.empty()) return fault;
    }
    if (config.attach.size() > ingest::kMaxAttachedAddresses) return "too many addresses";
    return {};
  }
  if (key == "adb") {
    const auto nothing = [](const char*) -> const char* { return nullptr; };
    const auto address = attach::adb_address(config.adb, nothing);
    return address.ok() ? std::string() : address.error().message;
  }
  if (key == "usbmux" && config.usbmux != "off") {
    const auto address = attach::usbmux_address(config.usbmux, nullptr);
    return address.ok() ? std::string() : address.error().message;
  }
  if (key == "durability") return one_of(config.durability, {"os", "fsync"});
  if (key == "page_codecs") return one_of(config.page_codecs, {"auto", "off"});
  if (key == "log_level") {
    return one_of(config.log_level, {"trace", "debug", "info", "warn", "error", "off"});
  }
  if (key == "symbol_directories") return paths_fault(config.symbol_directories, false);
  if (key == "symbol_roots") return paths_fault(config.symbol_roots, true);
  return number_fault(key, config);
}

std::string default_root() {
  return ::access(kServiceRoot, W_OK | X_OK) == 0 ? kServiceRoot : kDefaultRoot;
}

storage::Durability durability_of(const Config& config) {
  return config.durability == "fsync" ? storage::Durability::kFsync : storage::Durability::kOs;
}

Result<CommandLine> read_command_line(int argc, const char* const* argv) {
  CommandLine line;
  FlagsOnly flags;
  // Twice, because the file that a flag names comes before the flags.
  Config ignored;
  std::string help;
  COLLECT_TRY(parse_flags(argc, argv, ignored, flags, &help));
  if (flags.help || flags.version) {
    line.print = flags.help ? help : fmt::format("collectord {}\n", kVersion);
    return line;
  }
  if (!flags.config_file.empty()) COLLECT_TRY(read_config_file(flags.config_file, line.config));
  FlagsOnly again;
  COLLECT_TRY(parse_flags(argc, argv, line.config, again, nullptr));
  std::string fault;
  each_key(line.config, [&](const char* key, const char*, auto&) {
    if (!fault.empty()) return;
    const std::string why = value_fault(key, line.config);
    if (!why.empty()) fault = fmt::format("{}: {}", flag_of(key), why);
  });
  if (!fault.empty()) return Error{Code::kInvalidArgument, fault};
  if (line.config.root.empty()) line.config.root = default_root();
  line.words.assign(argv, argv + argc);
  line.ready_fd = flags.ready_fd;
  if (flags.print_config) line.print = config_to_toml(line.config);
  return line;
}

}  // namespace collect::daemon
