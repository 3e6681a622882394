#include "tests/fleet/audit.h"

#include <cstring>
#include <optional>
#include <utility>

#include "daemon/upload/download.h"
#include "formats/atf/layout.h"
#include "formats/core/text/hex.h"
#include "storage/manifest/record_ranges.h"
#include "storage/model/collector_identity.h"
#include "storage/rebuild/merge_parts.h"
#include "storage/session/session.h"
#include "tests/fleet/collector.h"
#include "tests/fleet/number_set.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

constexpr size_t kNamedViolations = 20;
constexpr uint64_t kScratchBytes = uint64_t{1} << 40;
constexpr char kScratch[] = "/scratch";
constexpr char kMerged[] = "/merged";

class NoPauses final : public upload::Pauses {
 public:
  bool pause(uint64_t) override { return true; }
};

std::string part_name(const upload::PartName& part) {
  return part.collector + "-" + part.epoch;
}

const upload::CommittedThread* thread_of(const upload::Commit& commit, uint32_t stream) {
  for (const upload::CommittedThread& thread : commit.threads) {
    if (thread.stream_id == stream) return &thread;
  }
  return nullptr;
}

}  // namespace

void Audit::violated(const std::string& what) {
  if (++result_.violation_count <= kNamedViolations) result_.violations.push_back(what);
}

AuditResult Audit::judge(const std::vector<Run>& runs, uint64_t merge_every) {
  find_in_store();
  for (const Disk& disk : disks_) find_on(disk);
  uint64_t counted = 0;
  for (const Run& run : runs) {
    ++result_.runs;
    result_.whole_runs += run.end == RunEnd::kAcknowledged ? 1 : 0;
    const std::vector<Part>& parts = parts_[hex_bytes(run.process)];
    result_.parts += parts.size();
    result_.moved_runs += parts.size() > 1 ? 1 : 0;
    judge_run(run, parts);
    // What moved is what merging is for: of these each one.
    const bool is_sampled = merge_every != 0 && (parts.size() > 1 || counted++ % merge_every == 0);
    if (is_sampled && !parts.empty()) merge(run, parts);
  }
  for (const auto& [collector, lost] : lost_) {
    result_.lost_ranges.push_back("collector " + collector + ": " + std::to_string(lost.records) +
                                  " records in " + std::to_string(lost.ranges) +
                                  " threads, the first: " + lost.first);
  }
  return result_;
}

void Audit::find_in_store() {
  const std::string ending = std::string("/") + upload::kCommitName;
  store_.for_each(ending, [&](const std::string& key, const std::string& body) {
    auto commit = upload::commit_from_json(body);
    if (!commit.ok()) {
      violated(key + ": " + to_string(commit.error()));
      return;
    }
    Part part;
    part.where = Where::kStore;
    part.commit = std::move(*commit);
    part.prefix = key.substr(0, key.size() - ending.size() + 1);
    parts_[part.commit.process_id].push_back(std::move(part));
  });
}

void Audit::find_on(const Disk& disk) {
  disk.disk->revive();
  MemoryFs fs(*disk.disk);
  const auto session_paths = storage::list_sessions(fs, Collector::kRoot);
  if (!session_paths.ok()) return;  // nothing was ever stored there
  for (const storage::SessionPath& session_path : *session_paths) {
    auto manifest = storage::read_manifest(fs, session_path.directory);
    // As the machine would after it was repaired: what the disk has is sealed.
    if (disk.is_dead && (!manifest.ok() || manifest->state == storage::SessionState::kRecording)) {
      storage::SessionOptions options;
      options.root = Collector::kRoot;
      if (!storage::recover_session(fs, options, session_path.directory).ok()) continue;
      manifest = storage::read_manifest(fs, session_path.directory);
    }
    if (!manifest.ok()) continue;
    const std::string name = storage::collector_name(manifest->identity.collector);
    const size_t dash = std::min(name.rfind('-'), name.size());
    Part part;
    part.where = disk.is_dead ? Where::kDeadDisk : Where::kDisk;
    part.commit =
        upload::commit_of(*manifest, session_path.name,
                          {name.substr(0, dash), name.substr(std::min(dash + 1, name.size()))});
    part.disk = disk.disk;
    part.directory = session_path.directory;
    part.is_sealed = manifest->state != storage::SessionState::kRecording;
    std::vector<Part>& parts = parts_[part.commit.process_id];
    const bool is_uploaded = std::any_of(parts.begin(), parts.end(), [&](const Part& other) {
      return other.where == Where::kStore && other.commit.part == part.commit.part &&
             other.commit.session == part.commit.session;
    });
    if (!is_uploaded) parts.push_back(std::move(part));
  }
}

void Audit::judge_run(const Run& run, const std::vector<Part>& parts) {
  for (uint32_t i = 0; i < run.streams.size(); ++i) judge_stream(run, i, parts);
}

void Audit::judge_stream(const Run& run, uint32_t stream, const std::vector<Part>& parts) {
  const StreamTruth& truth = run.streams[stream];
  result_.numbered += truth.numbered;
  result_.dropped += truth.dropped;
  NumberSet found;
  for (const Where where : {Where::kStore, Where::kDisk, Where::kDeadDisk}) {
    for (const Part& part : parts) {
      if (part.where != where) continue;
      const upload::CommittedThread* const thread = thread_of(part.commit, stream + 1);
      if (thread == nullptr) continue;
      uint64_t fresh = 0;
      uint64_t all = 0;
      for (const upload::NumberRange& range : thread->index.ranges) {
        all += range.to - range.from;
        fresh += found.add(range);
      }
      result_.repeated += all - fresh;
      uint64_t& sum = where == Where::kStore  ? result_.in_store
                      : where == Where::kDisk ? result_.on_disks
                                              : result_.on_dead_disks;
      sum += fresh;
      if (where != Where::kDeadDisk || fresh == 0) continue;
      Lost& lost = lost_[part_name(part.commit.part)];
      lost.records += fresh;
      if (lost.ranges++ != 0) continue;
      lost.first = part.commit.device_id + ", thread " + std::to_string(thread->id) + ", within " +
                   std::to_string(thread->index.ranges.front().from) + " to " +
                   std::to_string(thread->index.ranges.back().to - 1);
    }
  }
  const std::string what = "process " + hex_bytes(run.process) + " of device-" +
                           std::to_string(run.agent) + ", stream " + std::to_string(stream + 1);
  if (found.end() > truth.numbered) {
    violated(what + ": record " + std::to_string(found.end() - 1) + " was never made");
  }
  const uint64_t known = found.count_within({0, truth.acknowledged});
  if (known != truth.acknowledged) {
    violated(what + ": " + std::to_string(truth.acknowledged - known) +
             " acknowledged records are nowhere");
  }
  const uint64_t rest = truth.numbered - truth.acknowledged -
                        found.count_within({truth.acknowledged, truth.numbered});
  if (run.end == RunEnd::kAcknowledged && rest != 0) {
    violated(what + ": " + std::to_string(rest) + " records of a whole recording are nowhere");
  }
  (run.end == RunEnd::kGaveUp ? result_.given_up : result_.in_rings) += rest;
}

void Audit::merge(const Run& run, const std::vector<Part>& parts) {
  static NoPauses pauses;
  static MachineClock clock;
  static upload::StaticCredentials credentials({"access", "secret"});
  const std::string what = "process " + hex_bytes(run.process);
  auto client = upload::S3Client::create(store_.settings(), credentials, clock);
  COLLECT_CHECK(client.ok());
  upload::Retries retries({}, pauses, 1, [](const Error&) {});
  MemoryDisk scratch(kScratchBytes);
  MemoryFs fs(scratch);
  std::vector<std::unique_ptr<MemoryFs>> mounted;
  std::vector<storage::SessionPart> found;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.where == Where::kDeadDisk || !part.is_sealed) continue;
    storage::SessionPart source{&fs, part.directory, {}};
    if (part.where == Where::kStore) {
      const std::string root = kScratch + std::to_string(i);
      COLLECT_CHECK(fs.make_directories(root).ok());
      const auto directory = upload::download_part(**client, retries, part.prefix, fs, root);
      if (!directory.ok()) {
        violated(what + ": " + part.prefix + ": " + to_string(directory.error()));
        return;
      }
      source.directory = *directory;
    } else {
      mounted.push_back(std::make_unique<MemoryFs>(*part.disk));
      source.fs = mounted.back().get();
    }
    auto manifest = storage::read_manifest(*source.fs, source.directory);
    COLLECT_CHECK(manifest.ok());
    compare_clocks(run, *manifest);
    source.manifest = std::move(*manifest);
    found.push_back(std::move(source));
  }
  if (found.empty()) return;
  storage::SessionOptions options;
  options.root = kMerged;
  options.symbolize = false;
  COLLECT_CHECK(fs.make_directories(kMerged).ok());
  const auto merged = storage::merge_parts(fs, options, std::move(found),
                                           [](uint64_t, uint64_t) { return Status(); });
  if (!merged.ok()) {
    violated(what + " can't be merged: " + to_string(merged.error()));
    return;
  }
  ++result_.merged_runs;
  const auto manifest = storage::read_manifest(fs, merged->session.directory);
  COLLECT_CHECK(manifest.ok());
  compare_records(run, fs, *manifest, merged->session.directory);
}

// Byte for byte, each at the number that the manifest gives it.
void Audit::compare_records(const Run& run, MemoryFs& fs, const storage::Manifest& manifest,
                            const std::string& directory) {
  for (const storage::ManifestThread& thread : manifest.threads) {
    const std::string path =
        directory + "/" + storage::thread_directory_name(thread.id) + "/index.atf";
    auto file = fs.open(path, storage::OpenMode::kRead);
    if (!file.ok()) {
      violated(to_string(file.error()));
      continue;
    }
    std::vector<uint8_t> bytes(*(*file)->size());
    COLLECT_CHECK((*file)->read_at(0, bytes).ok());
    if (bytes.size() != atf::kHeaderBytes + thread.events * atf::kEventBytes + atf::kFooterBytes) {
      violated(path + " has another size than its events take");
      continue;
    }
    for (const storage::RecordRange& range :
         storage::record_ranges(manifest.gaps, thread.id, Lane::kIndex, thread.events)) {
      for (uint64_t i = 0; i < range.records; ++i) {
        uint8_t wanted[atf::kEventBytes];
        write_record(run, range.first_seq + i, wanted);
        const uint8_t* const there =
            bytes.data() + atf::kHeaderBytes + (range.position + i) * atf::kEventBytes;
        if (std::memcmp(there, wanted, sizeof wanted) != 0) {
          violated(path + ": not what the agent recorded as number " +
                   std::to_string(range.first_seq + i));
          break;
        }
        ++result_.merged_records;
      }
    }
    const StreamTruth& truth = run.streams.at(thread.stream_id - 1);
    const uint64_t missing = truth.numbered - std::min(truth.numbered, thread.events);
    if (run.end == RunEnd::kAcknowledged && thread.lost_events != missing + truth.dropped) {
      violated(path + ": counts " + std::to_string(thread.lost_events) + " lost records, and " +
               std::to_string(missing + truth.dropped) + " are missing");
    }
  }
}

// Where the manifest says how device and collector clocks relate, it is right within what it says.
void Audit::compare_clocks(const Run& run, const storage::Manifest& manifest) {
  for (const storage::ClockSync& sync : manifest.clock_syncs) {
    const uint64_t now_ns = sync.at_ns - MachineClock::kBootNs;
    const auto truth = static_cast<int64_t>(run.clock.at(now_ns) - sync.at_ns);
    const auto error = static_cast<uint64_t>(std::abs(truth - sync.offset_ns));
    ++result_.clocks_compared;
    result_.worst_clock_error_ns = std::max(result_.worst_clock_error_ns, error);
    if (error <= sync.uncertainty_ns) continue;
    ++result_.clocks_off;
    result_.worst_clock_excess_ns =
        std::max(result_.worst_clock_excess_ns, error - sync.uncertainty_ns);
  }
}

}  // namespace collect::fleet
