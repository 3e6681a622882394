// collectord: reads its settings, starts the collector and its control plane, waits for signals.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/access.h"
#include "daemon/collector/collector.h"
#include "daemon/config.h"
#include "daemon/control/control_server.h"
#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/core.h"
#include "daemon/inherited_sockets.h"
#include "daemon/log.h"
#include "daemon/machine_needs.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/runtime/running_collectors.h"
#include "daemon/symbolize/child_program.h"
#include "daemon/symbolize/symbolizer.h"
#include "daemon/web/live/live_content.h"
#include "daemon/web/web_server.h"
#include "formats/core/text/environment_names.h"
#include "formats/core/text/printable.h"
#include "formats/core/threads.h"
#include "formats/core/version.h"
#include "storage/fs/posix_fs.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"
#include "storage/model/collector_identity.h"
#include "storage/model/session_layout.h"

namespace collect::daemon {
namespace {

constexpr int kExitRefused = 2;  // it did not start: the one line on stderr says why

int refuse(const std::string& why) {
  std::string line = "collectord: " + why;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "%s\n", printable_sentence(line).c_str());
  return kExitRefused;
}

// Every thread that starts later inherits the mask: signals are taken by sigwait alone.
sigset_t take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A peer that goes away while it is written to is an error of that write, not of the process.
  signal(SIGPIPE, SIG_IGN);
  // So is a file that may not grow (`ulimit -f`): the session fails, as on a full disk.
  signal(SIGXFSZ, SIG_IGN);
  return signals;
}

// A session keeps up to 256 threads' files open, an agent takes two sockets: the usual soft limit
// of 1,024 descriptors is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    spdlog::warn("the limit of open files stays as it is: {}", std::strerror(errno));
  }
}

Result<ingest::IngestOptions> ingest_options(const Config& config, const Access& access) {
  ingest::IngestOptions options;
  options.listen = config.ingest;
  std::copy_if(config.attach.begin(), config.attach.end(), std::back_inserter(options.attach),
               [](const std::string& address) { return !attach::is_device_address(address); });
  options.version = "collectord " + std::string(kVersion);
  options.heartbeat = ingest::milliseconds(config.heartbeat_ms);
  options.resume = ingest::milliseconds(config.resume_ms);
  options.max_connections = static_cast<uint32_t>(config.max_connections);
  options.sessions_per_agent = static_cast<uint32_t>(config.sessions_per_agent);
  options.connections_per_address = static_cast<uint32_t>(config.max_connections_per_address);
  options.threads_per_agent = static_cast<uint32_t>(config.threads_per_agent);
  options.max_sessions = config.max_unsealed_sessions;
  options.unsealed_files = config.max_unsealed_files;
  options.accounted_memory = config.max_memory_bytes;
  options.seal_at_stop = config.seal_at_stop;
  options.page_codecs = config.page_codecs == "auto";
  options.storage.durability = durability_of(config);
  options.storage.capture.enabled = config.rtc;
  options.storage.capture.roll_bytes = config.rtc_roll_bytes;
  options.storage.capture.roll_ns = config.rtc_roll_s * 1'000'000'000u;
  options.storage.capture.budget_bytes = config.rtc_budget_bytes;
  options.storage.max_session_bytes = config.max_session_bytes;
  options.storage.keep_free_bytes = config.keep_free_bytes;
  options.storage.keep_free_files = config.keep_free_files;
  options.storage.symbolize = config.symbolize;
  std::error_code error;
  options.storage.root = std::filesystem::absolute(config.root, error).lexically_normal().string();
  if (error) return errno_error(error.value(), config.root);
  options.token = access.token;
  options.guest_token = access.guest_token;
  options.tls = access.tls;
  options.local_access = access.local;
  return options;
}

// The lookup is in another directory: what the settings say is made absolute here.
symbolize::SymbolizerOptions symbol_options(const Config& config) {
  symbolize::SymbolizerOptions options;
  options.program = symbolize::symbolizer_program();
  options.roots = config.symbol_roots;
  for (const std::string& directory : config.symbol_directories) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(directory, error);
    options.directories.push_back(error ? directory : absolute.lexically_normal().string());
  }
  return options;
}

// Without a URL where there is no store.
upload::StoreRequest store_request(const Config& config) {
  upload::StoreRequest request;
  if (config.store == "off") return request;
  request.location = {config.store, config.store_endpoint, config.store_region,
                      config.store_bytes_per_s};
  request.keep_local = config.keep_local;
  request.tables = config.store_tables;
  return request;
}

CollectorOptions collector_options(const Config& config, ingest::IngestOptions ingest) {
  CollectorOptions options;
  options.devices.adb = config.adb;
  options.devices.usbmux = config.usbmux;
  options.devices.keep_absent = ingest.resume;
  std::copy_if(config.attach.begin(), config.attach.end(),
               std::back_inserter(options.devices.endpoints), attach::is_device_address);
  options.ingest = std::move(ingest);
  options.symbols = symbol_options(config);
  options.token_file = config.token_file;
  options.store = store_request(config);
  options.pack = config.pack;
  return options;
}

// Null when no live page is wanted.
Result<std::unique_ptr<web::WebServer>> start_web(const Config& config, const Access& access,
                                                  Collector& collector) {
  if (config.web == "off") return std::unique_ptr<web::WebServer>();
  web::WebOptions options;
  options.address = config.web;
  options.local = access.local;
  options.page_program = symbolize::own_program("collect-page");
  options.viewer_folder = config.perfetto_ui;
  if (config.symbolize) {
    symbolize::SymbolizerOptions symbols = symbol_options(config);
    options.symbols = {std::move(symbols.directories), std::move(symbols.roots)};
  }
  options.warn = [](const std::string& sentence) { spdlog::warn("{}", sentence); };
  return web::WebServer::start(options, std::make_unique<web::LiveContent>(collector));
}

// Null when no one wants them.
Result<std::unique_ptr<metrics::MetricsServer>> start_metrics(const Config& config,
                                                              Collector& collector) {
  if (config.metrics == "off") return std::unique_ptr<metrics::MetricsServer>();
  return metrics::MetricsServer::start(config.metrics, collector);
}

// Addresses of the live page and of metrics; empty: there are none.
struct Pages {
  std::string web;
  std::string metrics;
};

Status announce(int ready_fd, const Collector& collector, const control::ControlServer& control,
                const Pages& pages, const std::string& root) {
  // A failure to notify systemd is no reason to stop: it has its own timeout.
  (void)sd_notify(0, "READY=1");
  if (ready_fd < 0) return {};
  nlohmann::json where = {
      {"ingest", collector.ingest_address()}, {"control", control.address()}, {"root", root}};
  if (!pages.web.empty()) where["web"] = pages.web;
  if (!pages.metrics.empty()) where["metrics"] = pages.metrics;
  const std::string line =
      where.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(ready_fd, line.data() + written, line.size() - written);
    if (count < 0) return errno_error(errno, fmt::format("--ready-fd {}", ready_fd));
    written += static_cast<size_t>(count);
  }
  ::close(ready_fd);
  return {};
}

void log_addresses(const Collector& collector, const control::ControlServer& control,
                   const Pages& pages, const std::string& root) {
  spdlog::info("collectord {} is ready: agents at {}, control at {}, sessions below {}", kVersion,
               collector.ingest_address(), control.address(), root);
  if (!pages.web.empty()) spdlog::info("live page at {}", pages.web);
  if (!pages.metrics.empty()) spdlog::info("metrics at {}", pages.metrics);
}

// Without it the collector is still at its address.
std::optional<runtime::CollectorNotice> post_notice(const std::string& control,
                                                    const std::string& root) {
  auto posted = runtime::CollectorNotice::post({static_cast<uint32_t>(::getpid()), control, root});
  if (posted.ok()) return std::move(*posted);
  spdlog::info("collectctl finds this collector by --control alone: {}", posted.error().message);
  return std::nullopt;
}

// What can change while it runs: tokens, certificates and the log level.
void reload(const CommandLine& line, Collector& collector, control::ControlServer& control) {
  std::vector<const char*> words;
  for (const std::string& word : line.words) words.push_back(word.c_str());
  const Result<CommandLine> read = read_command_line(static_cast<int>(words.size()), words.data());
  if (!read.ok()) {
    spdlog::error("reload: {}; nothing was changed", read.error().message);
    return;
  }
  const Config& fresh = read->config;
  Result<Access> access = read_access(fresh);
  Status changed = access.ok() ? control.check_access(access->control) : access.error();
  if (changed.ok()) changed = collector.set_access(access->token, access->tls);
  if (!changed.ok()) {
    spdlog::error("reload: {}; nothing was changed", changed.error().message);
    return;
  }
  control.set_access(access->control);
  spdlog::set_level(spdlog::level::from_str(fresh.log_level));
  spdlog::info("reloaded tokens, certificates and log level");
}

void wait_for_the_end(const sigset_t& signals, const CommandLine& line, Collector& collector,
                      control::ControlServer& control) {
  while (true) {
    int number{};
    if (sigwait(&signals, &number) != 0) continue;
    if (number != SIGHUP) {
      spdlog::info("received {}, stopping", number == SIGINT ? "SIGINT" : "SIGTERM");
      return;
    }
    const Status done = contain([&] { reload(line, collector, control); });
    if (!done.ok()) spdlog::error("reload: {}", done.error().message);
  }
}

// The settings say what is wanted; an inherited socket listens where it is.
void note_other_address(const char* key, const std::string& wanted, const std::string& bound) {
  if (wanted == bound) return;
  spdlog::info("{}: the inherited socket is at {}; the setting {} is not used", key, bound, wanted);
}

// What cannot be without a store, though there is none: "key = value". Empty: nothing.
std::string wants_store(const Config& config) {
  const auto said = [](const char* key, const std::string& value) {
    return fmt::format("{} = \"{}\"", key, value);
  };
  if (config.store != "off") return {};
  if (config.keep_local != "always") return said("keep_local", config.keep_local);
  if (config.store_tables != "off") return said("store_tables", config.store_tables);
  return {};
}

// Names that begin with COLLECT_ and that no program of the project reads.
void warn_of_unknown_variables() {
  for_each_unknown_variable(environ, [](const UnknownVariable& unknown) {
    std::string sentence;
    put_unknown_variable(
        unknown, [&sentence](std::string_view words) { sentence += words; },
        [](std::string_view name) { return name; });  // the log's formatter escapes it
    spdlog::warn("{}", sentence);
  });
}

int serve(const CommandLine& line) {
  const sigset_t signals = take_signals();
  if (const Status probed = probe_machine(machine_needs()); !probed.ok())
    return refuse(probed.error().message);
  const Result<InheritedSockets> inherited = take_inherited_sockets();
  if (!inherited.ok()) return refuse(inherited.error().message);
  control::allow_tls_1_3_only();
  const Result<Access> access = read_access(line.config);
  if (!access.ok()) return refuse(access.error().message);
  if (const std::string key = wants_store(line.config); !key.empty()) {
    return refuse(key + " needs a store, which is off: set store = s3://BUCKET");
  }
  Result<ingest::IngestOptions> options = ingest_options(line.config, *access);
  if (!options.ok()) return refuse(options.error().message);
  options->listening = inherited->ingest;
  const std::string root = options->storage.root;

  storage::PosixFs fs(root);
  storage::RootLock lock(fs, root);
  options->storage.root_lock = &lock;
  const uint64_t now_ns = storage::system_clock().unix_ns();
  const auto known = storage::read_collector_identity(fs, root, now_ns);
  options->storage.collector = known.ok() ? *known : storage::draw_collector_identity(now_ns);
  auto collector =
      Collector::create(collector_options(line.config, std::move(options).value()), fs);
  if (!collector.ok()) return refuse(collector.error().message);
  const Status locked = lock.hold();
  if (!locked.ok()) {
    return refuse(locked.error().code == Code::kUnavailable
                      ? fmt::format("root {} is in use by another collectord", root)
                      : "root: " + locked.error().message);
  }
  // A root that takes no file now, or whose id is damaged, is used all the same.
  if (!known.ok()) {
    spdlog::warn("{}; this run of the collector has an id of its own", known.error().message);
  }
  auto control = control::ControlServer::start(line.config.control, **collector, access->control,
                                               inherited->control);
  if (!control.ok()) return refuse(control.error().message);
  const auto web = start_web(line.config, *access, **collector);
  if (!web.ok()) return refuse(web.error().message);
  const auto metrics = start_metrics(line.config, **collector);
  if (!metrics.ok()) return refuse(metrics.error().message);
  const Pages pages{*web == nullptr ? "" : (*web)->url(),
                    *metrics == nullptr ? "" : (*metrics)->url()};
  if (inherited->ingest != -1) {
    note_other_address("ingest", line.config.ingest, (*collector)->ingest_address());
  }
  if (inherited->control != -1) {
    note_other_address("control", line.config.control, (*control)->address());
  }
  const Status running = (*collector)->run();
  if (!running.ok()) return refuse(running.error().message);
  auto notice = post_notice((*control)->address(), root);  // before it is reported as ready
  const Status announced = announce(line.ready_fd, **collector, **control, pages, root);
  if (!announced.ok()) spdlog::warn("{}", announced.error().message);
  warn_of_unknown_variables();
  log_addresses(**collector, **control, pages, root);

  wait_for_the_end(signals, line, **collector, **control);
  (void)sd_notify(0, "STOPPING=1");
  if (*web != nullptr) (*web)->stop();
  const bool in_time = (*collector)->stop(ingest::kShutdownBound);
  if (!in_time) spdlog::warn("not every session was dealt with in time; the next start does it");
  (*control)->shutdown(control::ControlServer::kShutdownDeadline);
  notice.reset();
  // Everything is stored and no one is connected: what is left is memory, which the system takes
  // back sooner than we could.
  ::_exit(EXIT_SUCCESS);
}

// Logs a fault of this machine (memory, threads, descriptors), which was contained where it was
// met.
void log_fault(const std::string& what, const Error& error) {
  static ingest::LogRateLimiter lines;
  const std::string line = lines.admit(fmt::format("{}: {}; it continues", what, to_string(error)));
  if (!line.empty()) spdlog::error("{}", line);
}

int run(int argc, char** argv) {
  Result<CommandLine> line = read_command_line(argc, argv);
  if (!line.ok()) return refuse(line.error().message);
  if (line->print) {
    signal(SIGPIPE, SIG_IGN);
    storage::StandardOutput output(std::cout);
    std::cout << *line->print;
    return output.finish("collectord", EXIT_SUCCESS);
  }
  set_up_log(line->config.log_level);
  report_faults_to(&log_fault);
  raise_descriptor_limit();
  fit_into_address_space();
  return serve(*line);
}

}  // namespace
}  // namespace collect::daemon

int main(int argc, char** argv) {
  using namespace collect;
  storage::hold_standard_streams();
  int code = 0;
  const Status done = contain([&] { code = daemon::run(argc, argv); });
  return done.ok() ? code : daemon::refuse(done.error().message);
}
