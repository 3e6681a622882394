#include "tests/fleet/collector.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "storage/manifest/manifest_file.h"
#include "storage/model/collector_identity.h"
#include "storage/model/session_layout.h"
#include "tests/fleet/heap_use.h"

namespace collect::fleet {
namespace {

constexpr int kLookAgainMs = 1;  // an uploader that has nothing more to do says so to no one

// What one user may have of a resource while no one else has any.
uint64_t allowed_of(uint64_t total) {
  return total / (principal::kShareOfFree + 1) * principal::kShareOfFree;
}

}  // namespace

void CollectorCounters::add(const CollectorCounters& other) {
  cpu_ns += other.cpu_ns;
  starts += other.starts;
  sessions += other.sessions;
  failed_sessions += other.failed_sessions;
  peak_open_files = std::max(peak_open_files, other.peak_open_files);
  peak_disk_bytes = std::max(peak_disk_bytes, other.peak_disk_bytes);
  refused += other.refused;
  for (size_t i = 0; i < budgets.size(); ++i) {
    budgets[i].used = std::max(budgets[i].used, other.budgets[i].used);
    budgets[i].allowed = std::max(budgets[i].allowed, other.budgets[i].allowed);
  }
}

HeldPauses::HeldPauses() : began_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  COLLECT_CHECK(began_ >= 0);
}

HeldPauses::~HeldPauses() {
  ::close(began_);
}

void HeldPauses::wait_for_pause() {
  pollfd waited{began_, POLLIN, 0};
  if (::poll(&waited, 1, kLookAgainMs) <= 0) return;
  uint64_t ignored = 0;
  ::eventfd_read(began_, &ignored);
}

bool HeldPauses::pause(uint64_t ns) {
  std::unique_lock lock(mutex_);
  due_ns_ = SimulatedTime::now_ns() + ns;
  waiting_ = true;
  ::eventfd_write(began_, 1);
  changed_.wait(lock, [this] { return let_go_ || ended_; });
  let_go_ = false;
  return !ended_;
}

void HeldPauses::let_go() {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = false;  // here, so that the next look sees that it works
    let_go_ = true;
  }
  changed_.notify_all();
}

void HeldPauses::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

Collector::Collector(CollectorSettings settings)
    : settings_(std::move(settings)), disk_(std::make_unique<MemoryDisk>(settings_.disk_bytes)) {}

Collector::~Collector() {
  if (is_up()) kill();
}

void Collector::start() {
  const HeapScope scope(HeapOwner::kCollectors);
  SimulatedTime::set_wall_error(clock_.wall_error());
  fs_ = std::make_unique<MemoryFs>(*disk_);
  const auto known = storage::read_collector_identity(*fs_, kRoot, clock_.unix_ns());
  identity_ = known.ok() ? *known : storage::draw_collector_identity(clock_.unix_ns());
  ingest::IngestOptions options;
  options.stepped = true;
  options.io_threads = 1;
  options.listen = settings_.address;
  options.version = "collectord";
  options.heartbeat = settings_.heartbeat;
  options.descriptors = settings_.descriptors;
  options.storage.root = kRoot;
  options.storage.collector = identity_;
  options.storage.symbolize = false;
  options.storage.clock = &clock_;
  options.storage.capture.enabled = true;
  auto ingest = ingest::Ingest::bind(options, *fs_, *this);
  COLLECT_CHECK(ingest.ok());
  ingest_ = std::move(*ingest);

  upload::UploadSettings uploads;
  uploads.s3 = settings_.store;
  uploads.retry.seed = settings_.seed + counters_.starts;
  pauses_ = std::make_unique<HeldPauses>();
  // Its buffer is as large as an object may be, and touched as far as one is: not to be counted.
  const HeapScope others(HeapOwner::kOthers);
  auto uploader = upload::Uploader::start(uploads, {*fs_, clock_, credentials_, {}, pauses_.get()});
  COLLECT_CHECK(uploader.ok());
  uploader_ = std::move(*uploader);
  ++counters_.starts;
  const auto session_paths = storage::list_sessions(*fs_, kRoot);
  if (session_paths.ok()) {
    for (const storage::SessionPath& session_path : *session_paths)
      sealed_.push_back(session_path.name);
  }
  COLLECT_CHECK(ingest_->run().ok());
  SimulatedTime::set_wall_error(0);
}

void Collector::kill() {
  counters_.refused += ingest_->counters().connections_refused;
  fs_->unmount();
  ingest_->abandon();
  ingest_.reset();
  pauses_->end();
  uploader_.reset();
  pauses_.reset();
  fs_.reset();
  sealed_.clear();
}

bool Collector::step() {
  if (!is_up()) return false;
  const HeapScope scope(HeapOwner::kCollectors);
  SimulatedTime::set_wall_error(clock_.wall_error());
  const uint64_t began = real_cpu_ns();
  const bool did_something = ingest_->step();
  counters_.cpu_ns += real_cpu_ns() - began;
  SimulatedTime::set_wall_error(0);
  return did_something;
}

void Collector::session_changed(const ingest::SessionSnapshot& session) {
  if (!ingest::is_over(session.state)) return;
  sealed_.push_back(session.name);
  if (!ever_sealed_.insert(session.name).second) return;  // listed after another start
  ++counters_.sessions;
  if (session.state == ingest::SessionState::kFailed) ++counters_.failed_sessions;
}

void Collector::let_uploads_go() {
  if (!is_up()) return;
  for (const std::string& name : std::exchange(sealed_, {})) {
    const auto session_path = storage::parse_session_path(kRoot, name);
    const auto manifest = storage::read_manifest(*fs_, session_path->directory);
    if (!manifest.ok()) continue;                                        // its disk is gone
    if (manifest->state == storage::SessionState::kRecording) continue;  // found at the start
    const storage::CollectorIdentity& by = manifest->identity.collector;
    const std::string part = storage::collector_name(by);
    const size_t dash = part.rfind('-');
    if (dash == std::string::npos) continue;
    COLLECT_CHECK(
        uploader_->add(*session_path, {part.substr(0, dash), part.substr(dash + 1)}).ok());
  }
  if (pauses_->is_waiting() && pauses_->due_ns() <= SimulatedTime::now_ns()) pauses_->let_go();
}

bool Collector::uploads_are_quiet() const {
  return !is_up() || pauses_->is_waiting() || uploader_->status().pending_sessions == 0;
}

void Collector::wait_for_uploads() {
  while (!uploads_are_quiet()) pauses_->wait_for_pause();
}

bool Collector::has_sessions() const {
  return is_up() && ingest_->budget().used(principal::Resource::kSessions) != 0;
}

bool Collector::is_idle() const {
  return sealed_.empty() && !has_sessions() && uploader_->status().pending_sessions == 0;
}

upload::UploadStatus Collector::uploads() const {
  return is_up() ? uploader_->status() : upload::UploadStatus();
}

void Collector::sample() {
  counters_.peak_open_files = std::max(counters_.peak_open_files, disk_->open_files());
  counters_.peak_disk_bytes = std::max(counters_.peak_disk_bytes, disk_->used_bytes());
  if (!is_up()) return;
  for (size_t i = 0; i < principal::kResources; ++i) {
    const auto resource = static_cast<principal::Resource>(i);
    BudgetPeak& peak = counters_.budgets[i];
    peak.used = std::max(peak.used, ingest_->budget().used(resource));
    peak.allowed = allowed_of(ingest_->budget().limits()[resource].total);
  }
}

std::unique_ptr<MemoryDisk> Collector::replace_disk() {
  COLLECT_CHECK(!is_up());
  ever_sealed_.clear();
  return std::exchange(disk_, std::make_unique<MemoryDisk>(settings_.disk_bytes));
}

std::string Collector::name() const {
  return storage::collector_name(identity_);
}

}  // namespace collect::fleet
