#include "storage/thread/relink.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/atf/writer.h"
#include "storage/model/session_layout.h"
#include "storage/thread/position_map.h"

namespace collect::storage {
namespace {

struct DetailFields {
  uint32_t length = 0;
  uint64_t index_seq = 0;
  uint64_t timestamp_ns = 0;
};

// No more than there is: most threads of most programs have little.
size_t block_bytes_of(const LaneFile& file) {
  return static_cast<size_t>(std::min<uint64_t>(kScanBlockBytes, file.summary().bytes));
}

// Goes over the records of a detail file in blocks; every record was found whole before.
class DetailWalker {
 public:
  DetailWalker(LaneFile& file, atf::Version version)
      : file_(file), version_(version), buffer_(block_bytes_of(file)) {}

  // The next record; null at the end. Valid until the next call.
  Result<uint8_t*> next() {
    at_ += fields_.length;
    fields_ = {};
    if (records_ == file_.summary().records) return static_cast<uint8_t*>(nullptr);
    if (!loaded(atf::kDetailHeaderBytes) || !loaded(load_le<uint32_t>(buffer_.data() + at_))) {
      offset_ += at_;
      at_ = 0;
      auto got = file_.read_section(offset_, buffer_);
      if (!got.ok()) return got.error();
      filled_ = *got;
      if (!loaded(atf::kDetailHeaderBytes) || !loaded(load_le<uint32_t>(buffer_.data()))) {
        return Error{Code::kDamaged,
                     fmt::format("{}: shorter than its records at {}", file_.path(), offset_)};
      }
    }
    uint8_t* record = buffer_.data() + at_;
    fields_.length = load_le<uint32_t>(record);
    fields_.timestamp_ns = load_le<uint64_t>(record + offsetof(atf::DetailHeaderV2, timestamp_ns));
    const uint64_t seq = load_le<uint64_t>(record + offsetof(atf::DetailHeaderV2, index_seq));
    fields_.index_seq = version_ == atf::Version::kV1 ? static_cast<uint32_t>(seq) : seq;
    ++records_;
    return record;
  }
  const DetailFields& fields() const { return fields_; }

 private:
  bool loaded(size_t bytes) const { return filled_ - at_ >= bytes; }

  LaneFile& file_;
  const atf::Version version_;
  std::vector<uint8_t> buffer_;
  uint64_t offset_ = 0;  // of the buffer in the section
  size_t at_ = 0;
  size_t filled_ = 0;
  uint64_t records_ = 0;
  DetailFields fields_;
};

// What the first pass finds: how far the file can stay as it is, and whether anything is kept
// behind that.
struct Survey {
  LaneSummary clean;
  uint64_t kept_behind = 0;
  uint64_t elsewhere = 0;  // records whose event another part may have
  uint64_t first_dropped_ns = 0;
  uint64_t last_ns = 0;
};

Result<Survey> survey(const RelinkFiles& files) {
  Survey found;
  DetailWalker walker(files.detail, files.format.version);
  PositionMap map(files.journal, Lane::kIndex, files.index.summary().records);
  bool clean = true;
  while (true) {
    auto record = walker.next();
    if (!record.ok()) return record.error();
    if (*record == nullptr) return found;
    const DetailFields& fields = walker.fields();
    const auto place = map.place(fields.index_seq);
    if (!place.ok()) return place.error();
    clean = clean && place->position == fields.index_seq;
    if (clean) {
      const Bytes bytes(*record, fields.length);
      scan_detail(files.format.records(), bytes, 1, found.clean);
      found.clean.checksum =
          atf::section_checksum(files.format.version, bytes, found.clean.checksum);
      continue;
    }
    if (found.first_dropped_ns == 0) found.first_dropped_ns = fields.timestamp_ns;
    found.last_ns = fields.timestamp_ns;
    if (place->position != kLost) ++found.kept_behind;
    if (place->may_be_elsewhere) ++found.elsewhere;
  }
}

// Collects changed records and writes them to the new file, a block at a time.
class DetailCopy {
 public:
  DetailCopy(LaneFile& out, const ThreadFormat& format) : out_(out), format_(format) {
    block_.reserve(kScanBlockBytes);
  }

  uint64_t records() const { return after_.records; }

  Status add(const uint8_t* record, uint32_t length, uint64_t index_seq) {
    if (block_.size() + length > kScanBlockBytes) COLLECT_TRY(flush());
    const size_t at = block_.size();
    block_.insert(block_.end(), record, record + length);
    uint8_t* seq = block_.data() + at + offsetof(atf::DetailHeaderV2, index_seq);
    if (format_.version == atf::Version::kV1) {
      store_le(seq, static_cast<uint32_t>(index_seq));
    } else {
      store_le(seq, index_seq);
    }
    scan_detail(format_.records(), Bytes(block_).subspan(at), 1, after_);
    return {};
  }

  Status flush() {
    if (block_.empty()) return {};
    after_.checksum = atf::section_checksum(format_.version, block_, after_.checksum);
    const Bytes parts[] = {block_};
    COLLECT_TRY(out_.append(parts, after_));
    block_.clear();
    return {};
  }

 private:
  LaneFile& out_;
  const ThreadFormat format_;
  std::vector<uint8_t> block_;
  LaneSummary after_;
};

// Keeps the records whose events another part of the session may have, with all numbers as the
// agent gave them: each run of them in a file of its own.
class UnlinkedFiles {
 public:
  explicit UnlinkedFiles(const RelinkFiles& files) : thread_(files) {}

  Status write() {
    DetailWalker walker(thread_.detail, thread_.format.version);
    PositionMap map(thread_.journal, Lane::kIndex, thread_.index.summary().records);
    NumberMap numbers(thread_.journal);
    for (uint64_t position = 0;; ++position) {
      const auto record = walker.next();
      if (!record.ok()) return record.error();
      if (*record == nullptr) break;
      const DetailFields& fields = walker.fields();
      const auto place = map.place(fields.index_seq);
      if (!place.ok()) return place.error();
      if (!place->may_be_elsewhere) continue;
      const auto number = numbers.number(position);
      if (!number.ok()) return number.error();
      if (*number != next_) {
        COLLECT_TRY(end_run());
        if (files_.size() == kMaxUnlinkedFiles) return {};
        COLLECT_TRY(begin_run(*number));
      }
      COLLECT_TRY(copy_->add(*record, fields.length, fields.index_seq));
      next_ = *number + 1;
    }
    return end_run();
  }

  // Where they cannot be written they are lost with the others.
  Status remove() {
    for (LaneFile& file : files_) {
      if (file.exists()) COLLECT_TRY(file.remove());
    }
    return {};
  }

 private:
  Status begin_run(uint64_t number) {
    const std::string path = fmt::format("{}/{}", thread_.directory, unlinked_file_name(number));
    if (thread_.fs.exists(path)) COLLECT_TRY(thread_.fs.remove_file(path));
    LaneFile& file = files_.emplace_back(thread_.fs, path, Lane::kDetail, thread_.format);
    COLLECT_TRY(file.create(false));
    copy_.emplace(file, thread_.format);
    return {};
  }
  Status end_run() {
    if (!copy_) return {};
    COLLECT_TRY(copy_->flush());
    copy_.reset();
    return files_.back().seal(thread_.durable);
  }

  const RelinkFiles& thread_;
  std::deque<LaneFile> files_;
  std::optional<DetailCopy> copy_;
  uint64_t next_ = kLost;
};

struct Drops {
  GapList gaps;
  uint64_t records = 0;

  void add(uint64_t before_seq, uint64_t count, uint64_t first_ns, uint64_t last_ns) {
    Gap gap;
    gap.lane = Lane::kDetail;
    gap.reasons = kLostUnlinked;
    gap.before_seq = before_seq;
    gap.lost = count;
    gap.numbered_lost = count;
    gap.first_ns = first_ns;
    gap.last_ns = last_ns;
    gaps.add(gap);
    records += count;
  }
};

// Writes detail.atf.new with what is kept. `places`: of the gaps known before, moved along.
Status rewrite(const RelinkFiles& files, LaneFile& out, std::vector<Gap>& places, Drops& drops) {
  COLLECT_TRY(out.create(false));
  DetailWalker walker(files.detail, files.format.version);
  PositionMap map(files.journal, Lane::kIndex, files.index.summary().records);
  DetailCopy copy(out, files.format);
  size_t place = 0;
  for (uint64_t old_position = 0;; ++old_position) {
    auto record = walker.next();
    if (!record.ok()) return record.error();
    while (place < places.size() &&
           (*record == nullptr || places[place].before_seq <= old_position)) {
      places[place++].before_seq = copy.records();
    }
    if (*record == nullptr) break;
    const DetailFields& fields = walker.fields();
    const auto event = map.place(fields.index_seq);
    if (!event.ok()) return event.error();
    if (event->position == kLost) {
      drops.add(copy.records(), 1, fields.timestamp_ns, fields.timestamp_ns);
    } else {
      COLLECT_TRY(copy.add(*record, fields.length, event->position));
    }
  }
  COLLECT_TRY(copy.flush());
  return out.seal(files.durable);
}

// Counts the drops at the moment when the files have lost them, before anything else can fail.
void count_drops(std::vector<Gap> places, const Drops& drops, LaneLosses& losses) {
  places.insert(places.end(), drops.gaps.gaps().begin(), drops.gaps.gaps().end());
  std::sort(places.begin(), places.end(), [](const Gap& a, const Gap& b) {
    return a.before_seq != b.before_seq ? a.before_seq < b.before_seq : a.first_ns < b.first_ns;
  });
  GapList merged;
  for (const Gap& gap : places) merged.add(gap);
  losses.gaps = std::move(merged);
  losses.numbered += drops.records;
}

// Keeps the first records, up to the one that would have to change.
Status keep_clean(const RelinkFiles& files, const Survey& found, LaneLosses& losses) {
  Drops drops;
  drops.add(found.clean.records, files.detail.summary().records - found.clean.records,
            found.first_dropped_ns, found.last_ns);
  std::vector<Gap> places = losses.gaps.gaps();
  for (Gap& gap : places) gap.before_seq = std::min(gap.before_seq, found.clean.records);
  if (found.clean.records == 0) {
    COLLECT_TRY(files.detail.remove());
    count_drops(std::move(places), drops, losses);
    return {};
  }
  const Status cut = files.detail.cut(found.clean);  // where it fails, seal() tries it again
  count_drops(std::move(places), drops, losses);
  COLLECT_TRY(cut);
  return files.detail.seal(files.durable);
}

void set_link(atf::Version version, uint8_t* event, uint64_t link, bool& changed) {
  if (version == atf::Version::kV1) {
    uint8_t* at = event + offsetof(atf::IndexEventV1, detail_seq);
    const uint32_t wanted = static_cast<uint32_t>(link);  // kNoDetail becomes kNoDetailV1
    if (load_le<uint32_t>(at) == wanted) return;
    store_le(at, wanted);
  } else {
    uint8_t* at = event + offsetof(atf::IndexEventV2, detail_seq);
    if (load_le<uint64_t>(at) == link) return;
    store_le(at, link);
  }
  changed = true;
}

}  // namespace

bool links_agree(const LaneSummary& index, const LaneSummary& detail) {
  return index.links == detail.records && index.next_link == detail.records &&
         index.link_hash == detail.link_hash;
}

Status relink_detail(const RelinkFiles& files, LaneLosses& losses) {
  auto found = survey(files);
  if (!found.ok()) return found.error();
  if (found->clean.records == files.detail.summary().records) {
    return files.detail.seal(files.durable);
  }
  if (found->elsewhere != 0) {
    UnlinkedFiles unlinked(files);
    const Status kept = unlinked.write();
    if (!kept.ok()) {
      COLLECT_TRY(unlinked.remove());
      if (kept.code() != Code::kNoSpace) return kept;
    }
  }
  if (found->kept_behind == 0) return keep_clean(files, *found, losses);

  const std::string temporary = fmt::format("{}/{}", files.directory, kDetailTemporaryFile);
  if (files.fs.exists(temporary)) COLLECT_TRY(files.fs.remove_file(temporary));
  LaneFile out(files.fs, temporary, Lane::kDetail, files.format);
  std::vector<Gap> places = losses.gaps.gaps();
  Drops drops;
  const Status written = rewrite(files, out, places, drops);
  if (!written.ok()) {
    if (out.exists()) COLLECT_TRY(out.remove());
    if (written.code() == Code::kNoSpace) return keep_clean(files, *found, losses);
    return written;
  }
  COLLECT_TRY(files.detail.replace_by_sealed(out));
  count_drops(std::move(places), drops, losses);
  return files.durable ? files.fs.sync_directory(files.directory) : Status();
}

Status relink_index(const RelinkFiles& files) {
  const atf::Version version = files.format.version;
  std::vector<uint8_t> buffer(block_bytes_of(files.index));
  std::unique_ptr<DetailWalker> walker;
  if (files.detail.exists()) walker = std::make_unique<DetailWalker>(files.detail, version);
  uint64_t detail_seq = 0;
  uint64_t wanted = kLost;  // position of the event that the next detail record belongs to
  const auto advance = [&]() -> Status {
    wanted = kLost;
    if (walker == nullptr) return {};
    auto record = walker->next();
    if (!record.ok()) return record.error();
    if (*record != nullptr) wanted = walker->fields().index_seq;
    return {};
  };
  COLLECT_TRY(advance());
  LaneSummary after;
  while (after.records < files.index.summary().records) {
    auto got = files.index.read_section(after.bytes, buffer);
    if (!got.ok()) return got.error();
    const uint64_t events = *got / atf::kEventBytes;
    if (events == 0) {
      return Error{Code::kDamaged, files.index.path() + ": shorter than its events"};
    }
    bool changed = false;
    for (uint64_t i = 0; i < events; ++i) {
      uint8_t* event = buffer.data() + i * atf::kEventBytes;
      if (after.records + i != wanted) {
        set_link(version, event, atf::kNoDetail, changed);
        continue;
      }
      set_link(version, event, detail_seq++, changed);
      COLLECT_TRY(advance());
    }
    const Bytes block(buffer.data(), events * atf::kEventBytes);
    if (changed) COLLECT_TRY(files.index.overwrite_section(after.bytes, block));
    const uint32_t checksum = atf::section_checksum(version, block, after.checksum);
    scan_index(files.format.records(), block, UINT64_MAX, after);
    after.checksum = checksum;
  }
  files.index.set_summary(after);
  return {};
}

}  // namespace collect::storage
