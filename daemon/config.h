// The daemon's settings: defaults, then the TOML file, then the flags. Every key of the file is
// also a flag, with - for _. DAEMON.md "Configuration" has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "storage/model/session_types.h"

namespace collect::daemon {

inline constexpr char kServiceRoot[] = "/var/lib/collectord";
inline constexpr char kDefaultRoot[] = "ada_traces";
inline constexpr char kDefaultWeb[] = "127.0.0.1:7712";  // of --web without an address
inline constexpr uint64_t kMaxConfigBytes = 1u << 20;

struct Config {
  std::string root;  // empty until default_root() or someone says otherwise
  std::string ingest = "127.0.0.1:7710";
  std::string control = "127.0.0.1:7711";
  std::string web = "off";      // or an address of this machine
  std::string metrics = "off";  // or an address
  std::string store = "off";    // or s3://BUCKET
  std::string store_endpoint;   // empty: AWS_ENDPOINT_URL, AWS's
  std::string store_region;     // empty: AWS_REGION, us-east-1
  uint64_t store_bytes_per_s = 0;
  std::string keep_local = "always";  // or "until_committed", "14 days"
  std::string store_tables = "off";   // or "functions", "all"
  std::string perfetto_ui;            // folder of an unpacked one; empty: ui.perfetto.dev
  std::string durability = "os";      // or "fsync"
  std::string local_access = "user";  // or "group:NAME", "any"
  std::string token_file;
  std::string guest_token_file;
  std::string control_token_file;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  std::vector<std::string> attach;
  std::string adb = "auto";
  std::string usbmux = "auto";
  uint64_t heartbeat_ms = 2'000;
  uint64_t resume_ms = 60'000;
  bool seal_at_stop = false;
  uint64_t max_connections = 4'096;
  uint64_t max_connections_per_address = 1'024;
  uint64_t threads_per_agent = 16'384;
  uint64_t sessions_per_agent = 1'000;
  // Limits for all agents together.
  uint64_t max_unsealed_sessions = 16'384;
  uint64_t max_unsealed_files = 1u << 20;
  uint64_t max_memory_bytes = uint64_t{2} << 30;
  std::string page_codecs = "auto";  // or "off"
  std::string log_level = "info";
  bool rtc = true;
  uint64_t rtc_roll_bytes = 256u << 20;
  uint64_t rtc_roll_s = 0;
  uint64_t rtc_budget_bytes = uint64_t{4} << 30;
  bool pack = false;
  uint64_t max_session_bytes = 0;
  uint64_t keep_free_bytes = storage::kDefaultKeepFreeBytes;
  uint64_t keep_free_files = storage::kDefaultKeepFreeFiles;
  bool symbolize = true;
  std::vector<std::string> symbol_directories;
  std::vector<std::string> symbol_roots = {"/"};
};

// Calls visit(key, help, field) for every key: the one list of them.
template <class Settings, class Visit>
void each_key(Settings& config, Visit&& visit) {
  visit("root", "directory that sessions are written into", config.root);
  visit("ingest", "where agents connect: host:port, unix:/path or abstract:name", config.ingest);
  visit("control", "where the control plane listens: host:port or unix:/path", config.control);
  visit("web",
        "where browsers of this machine get the live page: off, or host:port; the flag alone: "
        "127.0.0.1:7712",
        config.web);
  visit("perfetto_ui",
        "folder with an unpacked Perfetto UI, which the live page opens instead of ui.perfetto.dev",
        config.perfetto_ui);
  visit("metrics", "where Prometheus gets metrics: off, or host:port", config.metrics);
  visit("store", "object storage that sealed sessions are copied to: off, or s3://BUCKET",
        config.store);
  visit("store_endpoint", "address of a store that is not AWS: https://host:port",
        config.store_endpoint);
  visit("store_region", "region of the store", config.store_region);
  visit("store_bytes_per_s", "most bytes that go to the store in a second; 0: no limit",
        config.store_bytes_per_s);
  visit("keep_local",
        "how long a session stays here beside the store: always, until_committed (removed when it "
        "is in the store), or a number of days such as \"14 days\"",
        config.keep_local);
  visit(
      "store_tables",
      "tables of Parquet beside each session in the store: off, functions (what they took, in all "
      "and by second), or all (each call and event too)",
      config.store_tables);
  visit("durability",
        "what acknowledged data survives: os, a daemon crash; fsync, also a power failure",
        config.durability);
  visit("local_access",
        "users of this machine who may connect without a token or a client certificate: user (this "
        "daemon's own, and root), group:NAME (its members too) or any",
        config.local_access);
  visit("token_file", "file with the token that agents must prove to know", config.token_file);
  visit("guest_token_file",
        "file with a token by which agents of users whom local_access keeps out get in over TCP; "
        "no one else is asked for it",
        config.guest_token_file);
  visit("control_token_file", "file with the token that clients of the control plane must show",
        config.control_token_file);
  visit("tls_certificate",
        "certificate (PEM) of this daemon, followed by its chain; enables TLS on TCP",
        config.tls_certificate);
  visit("tls_key", "private key (PEM) of tls_certificate", config.tls_key);
  visit("tls_client_ca", "CA certificate (PEM) that must have signed every client's certificate",
        config.tls_client_ca);
  visit("attach", "addresses of listening agents, dialled until they are detached", config.attach);
  visit("adb",
        "adb server through which agents on phones are found: auto (as adb itself finds it), off, "
        "host:port or unix:/path",
        config.adb);
  visit("usbmux",
        "usbmuxd through which agents on iPhones are found: auto (USBMUXD_SOCKET_ADDRESS, else "
        "unix:/var/run/usbmuxd), off, host:port or unix:/path",
        config.usbmux);
  visit("heartbeat_ms", "time between heartbeats; three missed ones end a link",
        config.heartbeat_ms);
  visit("resume_ms", "how long a session waits for an agent whose link broke", config.resume_ms);
  visit("seal_at_stop",
        "seal sessions when this daemon stops, instead of leaving them to its next start",
        config.seal_at_stop);
  visit("max_connections", "connections of agents at once", config.max_connections);
  visit("max_connections_per_address",
        "connections of agents at once from one address that is not loopback",
        config.max_connections_per_address);
  visit("threads_per_agent", "threads of one agent at once", config.threads_per_agent);
  visit("sessions_per_agent", "recordings that one process may begin", config.sessions_per_agent);
  visit("max_unsealed_sessions", "recordings of all agents that are not sealed yet",
        config.max_unsealed_sessions);
  visit("max_unsealed_files", "files and directories of those recordings",
        config.max_unsealed_files);
  visit("max_memory_bytes", "memory of all agents' sessions, threads and modules",
        config.max_memory_bytes);
  visit("page_codecs", "whether agents may encode pages: auto or off", config.page_codecs);
  visit("log_level", "level of the log on standard error", config.log_level);
  visit("rtc", "write every session also as RTC containers", config.rtc);
  visit("rtc_roll_bytes", "start a new container at this size; 0: never", config.rtc_roll_bytes);
  visit("rtc_roll_s", "start a new container at this age; 0: never", config.rtc_roll_s);
  visit("rtc_budget_bytes",
        "total size of a session's containers; beyond it the oldest is removed; 0: no limit",
        config.rtc_budget_bytes);
  visit("pack",
        "keep sealed sessions as one dense container, without their thread files: a fifteenth of "
        "the bytes",
        config.pack);
  visit("max_session_bytes",
        "size of a session, containers included; beyond it the session ends as failed; 0: no limit",
        config.max_session_bytes);
  visit("keep_free_bytes",
        "free space of the disk below which no session begins, and those that record end",
        config.keep_free_bytes);
  visit("keep_free_files",
        "files that the disk must have room for, below which no session and no thread begins; 0: "
        "no limit",
        config.keep_free_files);
  visit("symbolize", "look up function names after a session was sealed", config.symbolize);
  visit("symbol_directories", "directories with unstripped files, found by build id",
        config.symbol_directories);
  visit("symbol_roots",
        "directories below which files that agents name may be; never below /proc, /sys, /dev",
        config.symbol_roots);
}

// A sentence about the key's value when it can't be used; empty when it can.
std::string value_fault(std::string_view key, const Config& config);

// kServiceRoot when it is there and writable, else kDefaultRoot below the current directory.
std::string default_root();

// config_file.cc. Errors name file, line and column: "collectord.toml:3:1: …".
Status read_config_file(const std::string& path, Config& config);
std::string config_to_toml(const Config& config);
// The token without its line end; kInvalidArgument when it is empty or too long.
Result<std::string> read_token_file(const std::string& path);

struct CommandLine {
  Config config;
  std::vector<std::string> words;    // as they came, to be read again
  int ready_fd = -1;                 // one JSON line goes there when everything is up
  std::optional<std::string> print;  // to standard output, and nothing else is done
};

// The flags, over the file that --config names. kInvalidArgument with one line.
Result<CommandLine> read_command_line(int argc, const char* const* argv);

storage::Durability durability_of(const Config& config);

}  // namespace collect::daemon
