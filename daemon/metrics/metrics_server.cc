#include "daemon/metrics/metrics_server.h"

#include <dirent.h>
#include <fmt/core.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sys/resource.h>

#include <optional>
#include <utility>
#include <vector>

#include "formats/core/address.h"

namespace collect::metrics {
namespace {

namespace api = control::v1;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// The library's server answers on two threads: a client that sends nothing, or reads nothing, has
// one of them for so long at most.
constexpr char kThreads[] = "2";
constexpr char kRequestTimeoutMs[] = "3000";

ClientMetric metric_of(MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

// Open ones; absent where /proc is not there.
std::optional<uint64_t> open_descriptors() {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  uint64_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count - 3;  // ".", "..", and the one that looks
}

class Families {
 public:
  void counter(const char* name, const char* help, uint64_t value) {
    add(name, help, MetricType::Counter, static_cast<double>(value));
  }
  void gauge(const char* name, const char* help, double value) {
    add(name, help, MetricType::Gauge, value);
  }
  // Labels the newest metric.
  void label(const char* label, const char* value) {
    families_.back().metric.back().label.push_back({label, value});
  }
  // A further metric of the newest family, which labels distinguish.
  void also(uint64_t value) {
    families_.back().metric.push_back(metric_of(families_.back().type, static_cast<double>(value)));
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  void add(const char* name, const char* help, MetricType type, double value) {
    MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    family.metric.push_back(metric_of(type, value));
    families_.push_back(std::move(family));
  }

  std::vector<MetricFamily> families_;
};

double seconds_of(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + static_cast<double>(time.nanos()) / 1e9;
}

void add_store(Families& all, const api::StoreStats& store) {
  all.gauge("collectord_store_pending_sessions", "Sealed sessions that are not in the store.",
            static_cast<double>(store.sessions_pending()));
  all.gauge("collectord_store_pending_bytes", "Bytes of sealed sessions that are not in the store.",
            static_cast<double>(store.bytes_pending()));
  all.gauge("collectord_store_oldest_pending_timestamp_seconds",
            "Start of the oldest session that is not in the store, since the epoch; 0: none.",
            seconds_of(store.oldest_pending_time()));
  all.gauge("collectord_store_problem", "Whether uploads to the store fail now: 0 or 1.",
            store.problem().empty() ? 0 : 1);
  all.counter("collectord_store_committed_sessions_total",
              "Sessions that were committed to the store.", store.sessions_committed());
  all.counter("collectord_store_committed_bytes_total",
              "Bytes of sessions that were committed to the store.", store.bytes_committed());
  all.counter("collectord_store_sent_bytes_total", "Bytes that went to the store.",
              store.bytes_sent());
  all.counter("collectord_store_removed_sessions_total",
              "Sessions that were removed from the disk, because they are in the store.",
              store.sessions_removed());
  all.counter("collectord_store_removed_bytes_total",
              "Bytes of sessions that were removed from the disk.", store.bytes_removed());
  all.counter("collectord_store_refused_sessions_total", "Sessions that can never be uploaded.",
              store.sessions_refused());
  all.counter("collectord_store_failed_runs_total",
              "Upload attempts that did not commit their session.", store.runs_failed());
  bool is_first = true;
  for (const api::StoreRetry& retry : store.retries()) {
    if (std::exchange(is_first, false)) {
      all.counter("collectord_store_retries_total",
                  "Retried requests to the store, by the HTTP status of the answer; 0: no answer.",
                  retry.count());
    } else {
      all.also(retry.count());
    }
    all.label("code", std::to_string(retry.status()).c_str());
  }
}

class CollectorMetrics final : public prometheus::Collectable {
 public:
  explicit CollectorMetrics(control::CollectorApi& collector) : collector_(collector) {}

  std::vector<MetricFamily> Collect() const override {
    const api::Stats stats = collector_.stats();
    Families all;
    all.gauge("collectord_build_info", "The collector's version; always 1.", 1);
    all.label("version", stats.version().c_str());
    all.gauge("collectord_start_time_seconds", "When the collector started, since the epoch.",
              seconds_of(stats.start_time()));
    all.gauge("collectord_agents_connected", "Agents that are connected now.",
              stats.agents_connected());
    all.gauge("collectord_sessions_active", "Sessions that are not sealed.",
              stats.sessions_active());
    all.counter("collectord_connections_total", "Connections of agents, by result.",
                stats.connections_accepted());
    all.label("result", "accepted");
    all.also(stats.connections_refused());
    all.label("result", "refused");
    all.counter("collectord_received_bytes_total", "Bytes that came from agents.",
                stats.bytes_received());
    all.counter("collectord_stored_bytes_total", "Bytes of records that were stored.",
                stats.bytes_stored());
    all.counter("collectord_stored_pages_total", "Pages of records that were stored.",
                stats.pages_stored());
    all.counter("collectord_decoded_pages_total", "Stored pages that arrived encoded.",
                stats.pages_decoded());
    all.counter("collectord_bad_checksum_pages_total", "Pages whose checksum was wrong.",
                stats.pages_bad_checksum());
    all.counter("collectord_stored_events_total", "Calls, returns and other events stored.",
                stats.events_stored());
    all.counter("collectord_lost_events_total", "Events that agents counted as lost.",
                stats.events_lost());
    all.counter("collectord_stored_detail_records_total", "Detail records stored.",
                stats.detail_records_stored());
    all.gauge("collectord_disk_free_bytes", "Free space where sessions are stored.",
              static_cast<double>(stats.disk_free_bytes()));
    if (stats.has_store()) add_store(all, stats.store());
    all.gauge("process_resident_memory_bytes", "Memory of the collector.",
              static_cast<double>(stats.resident_bytes()));
    if (const auto open = open_descriptors()) {
      all.gauge("process_open_fds", "Open descriptors of the collector.",
                static_cast<double>(*open));
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      all.gauge("process_max_fds", "Descriptors that the collector may have open.",
                static_cast<double>(limit.rlim_cur));
    }
    return all.take();
  }

 private:
  control::CollectorApi& collector_;
};

}  // namespace

struct MetricsServer::State {
  std::shared_ptr<prometheus::Collectable> metrics;
  std::unique_ptr<prometheus::Exposer> exposer;
  std::string host;
};

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address,
                                                            control::CollectorApi& collector) {
  const auto parsed = parse_address(address);
  if (!parsed.ok()) return parsed.error();
  if (parsed->kind != Address::Kind::kTcp) {
    return Error{Code::kInvalidArgument,
                 fmt::format("metrics address {}: host:port is wanted", address)};
  }
  auto state = std::make_unique<State>();
  state->host = parsed->host.find(':') == std::string::npos ? parsed->host
                                                            : fmt::format("[{}]", parsed->host);
  state->metrics = std::make_shared<CollectorMetrics>(collector);
  const std::string port = std::to_string(parsed->port);
  try {
    state->exposer = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", fmt::format("{}:{}", state->host, port),
                                 "num_threads", kThreads, "request_timeout_ms", kRequestTimeoutMs});
    state->exposer->RegisterCollectable(state->metrics);
  } catch (const std::exception& error) {
    return Error{Code::kAlreadyExists, fmt::format("metrics address {}: cannot be listened at ({})",
                                                   address, error.what())};
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

std::string MetricsServer::url() const {
  const std::vector<int> ports = state_->exposer->GetListeningPorts();
  return fmt::format("http://{}:{}/metrics", state_->host, ports.empty() ? 0 : ports.front());
}

}  // namespace collect::metrics
