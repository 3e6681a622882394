#include "storage/rebuild/merge_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "formats/core/crc32.h"
#include "storage/model/session_layout.h"
#include "storage/rebuild/merged_manifest.h"
#include "storage/rebuild/part_lane.h"

namespace collect::storage {
namespace {

const Manifest kNothingLost;
constexpr size_t kCompareBytes = size_t{1} << 20;

// Detail records that a part kept because it has not their events.
struct Unlinked {
  std::string path;
  PartNumbers numbers;  // links have the agent's numbers already
};

// A thread as one part has it.
struct PartThread {
  const SessionPart* part = nullptr;
  uint32_t id = 0;  // N of its thread_N
  PartNumbers numbers;
  std::vector<Unlinked> unlinked;

  std::string path(Lane lane) const { return thread_file_path(part->directory, id, lane); }
};

// The link of an event says what a part has of details, and may differ.
void clear_link(atf::Version version, uint8_t* event) {
  if (version == atf::Version::kV1) {
    store_le(event + offsetof(atf::IndexEventV1, detail_seq), atf::kNoDetailV1);
  } else {
    store_le(event + offsetof(atf::IndexEventV2, detail_seq), atf::kNoDetail);
  }
}

class Merge {
 public:
  Merge(Fs& fs, const SessionOptions& options, const std::vector<SessionPart>& parts,
        const MakingProgress& progress)
      : parts_(parts),
        merged_(merged_manifest(parts)),
        version_(merged_.identity.version),
        progress_(progress),
        session_(fs, options, "the parts", std::nullopt) {
    for (const SessionPart& part : parts) all_bytes_ += part.manifest.totals.stored_bytes;
  }

  Result<MergeReport> run() {
    COLLECT_TRY(find_threads());
    COLLECT_TRY(compare_overlaps());
    for (const auto& [stream, threads] : streams_) say_holes(stream, threads);
    COLLECT_TRY(session_.begin(merged_));
    COLLECT_TRY(session_.add_metadata(merged_));
    for (const auto& [stream, threads] : streams_) {
      for (const Lane lane : {Lane::kIndex, Lane::kDetail})
        COLLECT_TRY(store(stream, threads, lane));
    }
    COLLECT_TRY(session_.manifest(merged_));
    auto report = session_.finish();
    if (!report.ok()) return report.error();
    COLLECT_TRY(progress_(all_bytes_, all_bytes_));
    return MergeReport{std::move(*report), repeated_events_};
  }

 private:
  Status find_threads() {
    for (const SessionPart& part : parts_) {
      for (const ManifestThread& thread : part.manifest.threads) {
        const auto ranges = [&](Lane lane, uint64_t records) {
          return RecordNumbers(record_ranges(part.manifest.gaps, thread.id, lane, records));
        };
        PartNumbers numbers{ranges(Lane::kIndex, thread.events),
                            ranges(Lane::kDetail, thread.detail_records)};
        if (!numbers.index.is_exact() || !numbers.detail.is_exact()) {
          return Error{Code::kUnsupported,
                       fmt::format("{}: {} has more gaps than its manifest lists, so the numbers "
                                   "of its records are not known",
                                   part.directory, thread_directory_name(thread.id))};
        }
        auto unlinked = unlinked_of(part, thread.id);
        if (!unlinked.ok()) return unlinked.error();
        streams_[thread.stream_id].push_back(
            {&part, thread.id, std::move(numbers), std::move(*unlinked)});
      }
    }
    return {};
  }

  Result<std::vector<Unlinked>> unlinked_of(const SessionPart& part, uint32_t thread) {
    const std::string directory =
        fmt::format("{}/{}", part.directory, thread_directory_name(thread));
    std::vector<Unlinked> found;
    const auto names = part.fs->list_directory(directory);
    if (!names.ok() && names.code() != Code::kNotFound) return names.error();
    if (!names.ok()) return found;  // its lanes report that
    for (const std::string& name : *names) {
      const auto first_seq = parse_unlinked_file_name(name);
      if (!first_seq) continue;
      const auto input = open_lane(*part.fs, fmt::format("{}/{}", directory, name), Lane::kDetail);
      if (!input.ok() && input.code() == Code::kExhausted) return input.error();
      if (!input.ok() || !input->checksum) {
        session_.missing({fmt::format("{}/{}: no whole file of detail records", directory, name)});
        continue;
      }
      const RecordRange range{.first_seq = *first_seq, .records = input->count};
      found.push_back(
          {fmt::format("{}/{}", directory, name), {RecordNumbers({}), RecordNumbers({range})}});
    }
    return found;
  }

  Status compare_overlaps() {
    for (const auto& [stream, threads] : streams_) {
      for (size_t i = 0; i < threads.size(); ++i) {
        for (size_t k = i + 1; k < threads.size(); ++k)
          COLLECT_TRY(compare(threads[i], threads[k]));
      }
    }
    return {};
  }

  Status compare(const PartThread& one, const PartThread& other) {
    for (const RecordRange& a : one.numbers.index.ranges()) {
      for (const RecordRange& b : other.numbers.index.ranges()) {
        const uint64_t first = std::max(a.first_seq, b.first_seq);
        const uint64_t end = std::min(a.end_seq(), b.end_seq());
        if (first >= end) continue;
        COLLECT_TRY(compare(one, a.position + (first - a.first_seq), other,
                            b.position + (first - b.first_seq), end - first, first));
      }
    }
    return {};
  }

  Status compare(const PartThread& one, uint64_t one_position, const PartThread& other,
                 uint64_t other_position, uint64_t events, uint64_t first_seq) {
    auto a = open_lane(*one.part->fs, one.path(Lane::kIndex), Lane::kIndex);
    if (!a.ok()) return a.error();
    auto b = open_lane(*other.part->fs, other.path(Lane::kIndex), Lane::kIndex);
    if (!b.ok()) return b.error();
    std::vector<uint8_t> buffers[2];
    for (uint64_t done = 0; done < events;) {
      const auto wanted = static_cast<size_t>(
          std::min<uint64_t>(kCompareBytes, (events - done) * atf::kEventBytes));
      const auto here =
          a->source.records->read((one_position + done) * atf::kEventBytes, wanted, buffers[0]);
      if (!here.ok()) return here.error();
      const auto there =
          b->source.records->read((other_position + done) * atf::kEventBytes, wanted, buffers[1]);
      if (!there.ok()) return there.error();
      const uint64_t both = std::min(here->size(), there->size()) / atf::kEventBytes;
      if (both == 0) break;  // a file that ends early: the lane itself reports that
      for (uint64_t at = 0; at < both; ++at, ++done) {
        uint8_t events_of[2][atf::kEventBytes];
        std::memcpy(events_of[0], here->data() + at * atf::kEventBytes, atf::kEventBytes);
        std::memcpy(events_of[1], there->data() + at * atf::kEventBytes, atf::kEventBytes);
        for (uint8_t* event : events_of) clear_link(version_, event);
        if (std::memcmp(events_of[0], events_of[1], atf::kEventBytes) == 0) continue;
        return Error{Code::kDamaged, fmt::format("{} and {} disagree about event {} of the thread",
                                                 one.path(Lane::kIndex), other.path(Lane::kIndex),
                                                 first_seq + done)};
      }
    }
    repeated_events_ += events;
    return {};
  }

  // Numbers that no part has, unless a part knows that they were lost on the device.
  void say_holes(uint32_t stream, const std::vector<PartThread>& threads) {
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      std::vector<RecordRange> ranges;
      for (const PartThread& thread : threads) {
        const auto& own = thread.numbers.of(lane).ranges();
        ranges.insert(ranges.end(), own.begin(), own.end());
        if (lane == Lane::kIndex) continue;
        for (const Unlinked& unlinked : thread.unlinked) {
          ranges.push_back(unlinked.numbers.detail.ranges().front());
        }
      }
      std::ranges::sort(ranges, {}, &RecordRange::first_seq);
      uint64_t next = 0;
      for (const RecordRange& range : ranges) {
        if (range.first_seq > next) say_hole(stream, threads, lane, next, range.first_seq);
        next = std::max(next, range.end_seq());
      }
      const ManifestThread* const listed = thread_of(stream);
      const uint64_t end = lane == Lane::kIndex ? listed->index_next : listed->detail_next;
      if (end > next) say_hole(stream, threads, lane, next, end);
    }
  }

  void say_hole(uint32_t stream, const std::vector<PartThread>& threads, Lane lane, uint64_t first,
                uint64_t end) {
    if (is_accounted_for(threads, lane, first, end)) return;
    const ManifestThread* const thread = thread_of(stream);
    session_.missing({fmt::format("{}{} to {} of thread {}: in none of the parts; another "
                                  "collector of this process may have them",
                                  lane == Lane::kIndex ? "events " : "detail records ", first,
                                  end - 1, thread->thread_id),
                      end - first});
  }

  // A part that reaches over the hole and knows why: they were overwritten in the ring, or found
  // damaged.
  static bool is_accounted_for(const std::vector<PartThread>& threads, Lane lane, uint64_t first,
                               uint64_t end) {
    constexpr uint32_t kKnown = kLostOverwritten | kLostDamaged;
    for (const PartThread& thread : threads) {
      const RecordNumbers& numbers = thread.numbers.of(lane);
      for (const Gap& gap : thread.part->manifest.gaps) {
        if (gap.thread != thread.id || gap.lane != lane || (gap.reasons & kKnown) == 0) continue;
        const uint64_t behind = numbers.number_of(gap.before_seq);
        if (behind - std::min(behind, gap.numbered_lost) <= first && end <= behind) return true;
      }
    }
    return false;
  }

  const ManifestThread* thread_of(uint32_t stream) const {
    return &*std::ranges::find(merged_.threads, stream, &ManifestThread::stream_id);
  }

  struct OpenLane {
    std::string path;
    std::optional<uint32_t> checksum;
    PartLane pages;
  };
  using OpenLanes = std::vector<std::unique_ptr<OpenLane>>;

  // What cannot be read of a part is missing; what cannot be read now, because this machine is out
  // of something, is an error.
  Status open(uint32_t stream, const PartThread& thread, const std::string& path, Lane lane,
              const Manifest& manifest, const PartNumbers& numbers, OpenLanes& lanes) {
    auto input = open_lane(*thread.part->fs, path, lane);
    if (!input.ok() && input.code() == Code::kExhausted) return input.error();
    if (!input.ok()) {
      session_.missing({input.error().message});
      return {};
    }
    if (input->version != version_) {
      session_.missing({path + ": of another ATF version"});
      return {};
    }
    if (!input->checksum) session_.missing({path + ": it has no footer, or a wrong one"});
    input->source.thread = thread.id;
    input->source.stream_id = stream;
    const auto checksum = input->checksum;
    lanes.push_back(std::make_unique<OpenLane>(
        OpenLane{path, checksum, PartLane(version_, std::move(input->source), manifest, numbers)}));
    return {};
  }

  Status store(uint32_t stream, const std::vector<PartThread>& threads, Lane lane) {
    OpenLanes lanes;
    for (const PartThread& thread : threads) {
      if (!thread.numbers.of(lane).ranges().empty()) {
        COLLECT_TRY(open(stream, thread, thread.path(lane), lane, thread.part->manifest,
                         thread.numbers, lanes));
      }
      if (lane == Lane::kIndex) continue;
      for (const Unlinked& unlinked : thread.unlinked) {
        COLLECT_TRY(
            open(stream, thread, unlinked.path, lane, kNothingLost, unlinked.numbers, lanes));
      }
    }
    while (true) {
      OpenLane* first = nullptr;
      const Page* next = nullptr;
      for (const auto& each : lanes) {
        const auto page = each->pages.peek();
        if (!page.ok()) return page.error();
        if (*page != nullptr && (next == nullptr || (*page)->first_seq < next->first_seq)) {
          first = each.get();
          next = *page;
        }
      }
      if (first == nullptr) break;
      COLLECT_TRY(store(*first, *next));
      first->pages.take();
    }
    for (const auto& each : lanes) {
      if (each->checksum && each->pages.checksum() != *each->checksum) {
        session_.missing({each->path + ": its checksum is wrong"});
      }
    }
    return {};
  }

  Status store(const OpenLane& from, const Page& page) {
    Page stored = page;
    stored.bytes_crc32c = crc32c(stored.bytes);
    const auto taken = session_.page(stored);
    if (!taken.ok()) return taken.error();
    if (*taken) session_.missing({fmt::format("{}: {}", from.path, **taken)});
    done_bytes_ += page.bytes.size();
    return progress_(std::min(done_bytes_, all_bytes_), all_bytes_);
  }

  const std::vector<SessionPart>& parts_;
  const Manifest merged_;
  const atf::Version version_;
  const MakingProgress& progress_;
  SessionRebuild session_;
  std::map<uint32_t, std::vector<PartThread>> streams_;
  uint64_t repeated_events_ = 0;
  uint64_t done_bytes_ = 0;
  uint64_t all_bytes_ = 0;
};

Status check_parts(const std::vector<SessionPart>& parts) {
  if (parts.empty() || parts.size() > kMaxParts) {
    return Error{Code::kInvalidArgument,
                 fmt::format("{} parts; a session is made of 1 to {}", parts.size(), kMaxParts)};
  }
  const SessionIdentity& first = parts.front().manifest.identity;
  for (const SessionPart& part : parts) {
    const SessionIdentity& identity = part.manifest.identity;
    if (identity.process_id != first.process_id || identity.recording != first.recording) {
      return Error{Code::kInvalidArgument, fmt::format("{} is of another recording than {}",
                                                       part.directory, parts.front().directory)};
    }
    if (part.manifest.state == SessionState::kRecording) {
      return Error{Code::kUnsupported, fmt::format("{} is not sealed; stop its session, or where "
                                                   "its collector is gone: collectctl recover {}",
                                                   part.directory, part.directory)};
    }
    if (identity.version != first.version) {
      return Error{Code::kUnsupported, fmt::format("{} has another ATF version than {}",
                                                   part.directory, parts.front().directory)};
    }
    if (part.manifest.has_stream_of_others()) {
      return Error{Code::kInvalidArgument,
                   part.directory + " holds a stream of another format, which has no parts"};
    }
  }
  return {};
}

}  // namespace

Result<MergeReport> merge_parts(Fs& fs, const SessionOptions& options,
                                std::vector<SessionPart> parts, const MakingProgress& progress) {
  COLLECT_TRY(check_parts(parts));
  std::ranges::stable_sort(parts, {},
                           [](const SessionPart& part) { return part.manifest.created_unix_ns; });
  Merge merge(fs, options, parts, progress);
  return merge.run();
}

}  // namespace collect::storage
