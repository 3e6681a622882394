#include "storage/thread/stream_journal.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "formats/core/crc32.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr size_t kEntryBytes = 64;
constexpr size_t kEntriesPerRead = 1024;
constexpr size_t kNameBytes = 48;
static_assert(4 + 4 + 8 + kNameBytes == kEntryBytes);      // identity
static_assert(4 + 4 + 1 + 1 + 14 + 5 * 8 == kEntryBytes);  // gap, stall
constexpr uint8_t kGapEntry = 0;
constexpr uint8_t kStallEntry = 1;
constexpr uint64_t kRepairSlot = 1;
constexpr size_t kEntryKind = 9;  // offset

using Entry = std::array<uint8_t, kEntryBytes>;

void put_checksum(Entry& entry) {
  store_le(entry.data(), crc32c(Bytes(entry).subspan<4>()));
}

bool holds(const uint8_t* entry) {
  return load_le<uint32_t>(entry) == crc32c(Bytes(entry + 4, kEntryBytes - 4));
}

Status write_entry(File& file, uint64_t slot, const Entry& entry) {
  const Bytes parts[] = {entry};
  return file.write_at(slot * kEntryBytes, parts);
}

Entry encode(const StreamIdentity& identity) {
  Entry entry{};
  const size_t length = std::min(identity.thread_name.size(), kNameBytes);
  ByteWriter to(MutableBytes(entry).subspan<4>());
  to.u32(identity.stream_id);
  to.u64(identity.start_ns);
  to.bytes(Bytes(reinterpret_cast<const uint8_t*>(identity.thread_name.data()), length));
  put_checksum(entry);
  return entry;
}

StreamIdentity decode_identity(const uint8_t* entry) {
  StreamIdentity identity;
  identity.stream_id = load_le<uint32_t>(entry + 4);
  identity.start_ns = load_le<uint64_t>(entry + 8);
  const char* name = reinterpret_cast<const char*>(entry + 16);
  identity.thread_name.assign(name, std::find(name, name + kNameBytes, '\0'));
  return identity;
}

Entry encode(const Gap& gap) {
  Entry entry{};
  ByteWriter to(MutableBytes(entry).subspan<4>());
  to.u32(gap.reasons);
  to.u8(static_cast<uint8_t>(gap.lane));
  to.u8(kGapEntry);
  to.zeros(14);
  to.u64(gap.before_seq);
  to.u64(gap.lost);
  to.u64(gap.numbered_lost);
  to.u64(gap.first_ns);
  to.u64(gap.last_ns);
  put_checksum(entry);
  return entry;
}

Entry encode(const Stall& stall) {
  Entry entry{};
  ByteWriter to(MutableBytes(entry).subspan<4>());
  to.u32(static_cast<uint32_t>(stall.kind));
  to.u8(0);
  to.u8(kStallEntry);
  to.zeros(14);
  to.u64(stall.count);
  to.u64(0);
  to.u64(stall.stalled_ns);
  to.u64(stall.first_ns);
  to.u64(stall.last_ns);
  put_checksum(entry);
  return entry;
}

std::optional<Stall> decode_stall(const uint8_t* entry) {
  ByteReader from(Bytes(entry, kEntryBytes));
  from.skip(4);
  const uint32_t kind = from.u32();
  if (entry[kEntryKind] != kStallEntry || kind >= std::size(kStallKindNames)) return std::nullopt;
  from.skip(16);
  Stall stall;
  stall.kind = static_cast<StallKind>(kind);
  stall.count = from.u64();
  from.skip(8);
  stall.stalled_ns = from.u64();
  stall.first_ns = from.u64();
  stall.last_ns = from.u64();
  return stall;
}

Gap decode_gap(const uint8_t* entry) {
  if (entry[kEntryKind] != kGapEntry) return {};
  ByteReader from(Bytes(entry, kEntryBytes));
  from.skip(4);
  Gap gap;
  gap.reasons = from.u32();
  gap.lane = from.u8() == 0 ? Lane::kIndex : Lane::kDetail;
  from.skip(15);  // and the entry's kind
  gap.before_seq = from.u64();
  gap.lost = from.u64();
  gap.numbered_lost = from.u64();
  gap.first_ns = from.u64();
  gap.last_ns = from.u64();
  return gap;
}

}  // namespace

StreamJournal::StreamJournal(Fs& fs, const std::string& directory, const char* name)
    : fs_(fs), path_(fmt::format("{}/{}", directory, name)) {}

Status StreamJournal::create(const StreamIdentity& identity) {
  auto file = fs_.open(path_, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  identity_ = std::make_unique<StreamIdentity>(identity);
  unsynced_ = true;
  return write_entry(*file_, 0, encode(identity));
}

Status StreamJournal::create_replacing(const StreamIdentity* identity) {
  auto file = fs_.open(path_, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  unsynced_ = true;
  if (identity != nullptr) COLLECT_TRY(write_entry(*file_, 0, encode(*identity)));
  slots_ = kRepairSlot + 1;
  return put_repair_entry(kReplacing);
}

Result<bool> StreamJournal::has_repair_entry(RepairEntry kind) {
  auto entry = entry_at(kRepairSlot);
  if (!entry.ok()) return entry.error();
  return *entry != nullptr && holds(*entry) && (*entry)[kEntryKind] == kind;
}

Status StreamJournal::put_repair_entry(RepairEntry kind) {
  COLLECT_TRY(ensure_open());
  block_.clear();
  unsynced_ = true;
  Entry entry{};
  entry[kEntryKind] = kind;
  put_checksum(entry);
  return write_entry(*file_, kRepairSlot, entry);
}

Status StreamJournal::ensure_open() {
  if (file_ != nullptr) return {};
  const bool is_new = !fs_.exists(path_);
  auto file = fs_.open(path_, is_new ? OpenMode::kCreate : OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  is_new_ |= is_new;
  return {};
}

Status StreamJournal::write_slot(uint64_t slot, const Gap& gap) {
  COLLECT_TRY(ensure_open());
  unsynced_ = true;
  COLLECT_TRY(write_entry(*file_, slot, encode(gap)));
  const size_t lane = static_cast<size_t>(gap.lane);
  newest_slot_[lane] = slot;
  newest_before_[lane] = gap.before_seq;
  return {};
}

Status StreamJournal::put(const Gap& gap, bool sync_it) {
  const bool replaces = would_replace(gap);
  block_.clear();
  COLLECT_TRY(write_slot(replaces ? newest_slot_[static_cast<size_t>(gap.lane)] : slots_, gap));
  if (!replaces) ++slots_;
  return sync_it ? sync() : Status();
}

Status StreamJournal::put(const Stall& stall) {
  COLLECT_TRY(ensure_open());
  block_.clear();
  unsynced_ = true;
  COLLECT_TRY(write_entry(*file_, slots_, encode(stall)));
  ++slots_;
  return {};
}

Result<const uint8_t*> StreamJournal::entry_at(uint64_t slot) {
  if (file_ == nullptr && !fs_.exists(path_)) return static_cast<const uint8_t*>(nullptr);
  COLLECT_TRY(ensure_open());
  const uint64_t held = block_.size() / kEntryBytes;
  if (slot < block_first_slot_ || slot >= block_first_slot_ + held) {
    block_.resize(kEntriesPerRead * kEntryBytes);
    auto got = file_->read_at(slot * kEntryBytes, block_);
    block_.resize(got.ok() ? *got / kEntryBytes * kEntryBytes : 0);
    block_first_slot_ = slot;
    if (!got.ok()) return got.error();
    if (block_.empty()) return static_cast<const uint8_t*>(nullptr);
  }
  return static_cast<const uint8_t*>(block_.data() + (slot - block_first_slot_) * kEntryBytes);
}

Result<bool> StreamJournal::read(uint64_t number, Gap& gap, std::optional<Stall>* stall) {
  auto entry = entry_at(number + 1);
  if (!entry.ok()) return entry.error();
  if (*entry == nullptr) return false;
  if (!holds(*entry)) {
    gap = {};
    if (stall != nullptr) stall->reset();
    return true;
  }
  gap = decode_gap(*entry);
  if (stall != nullptr) *stall = decode_stall(*entry);
  return true;
}

Result<bool> StreamJournal::is_whole() {
  bool is_torn = false;
  for (uint64_t slot = 0;; ++slot) {
    const auto entry = entry_at(slot);
    if (!entry.ok()) return entry.error();
    if (*entry == nullptr) return slot != 0;
    if (is_torn) return false;
    is_torn = !holds(*entry);
  }
}

Status StreamJournal::read_identity() {
  const auto first = entry_at(0);
  if (!first.ok()) return first.error();
  if (*first != nullptr && holds(*first)) {
    identity_ = std::make_unique<StreamIdentity>(decode_identity(*first));
  }
  return {};
}

Status StreamJournal::reopen(const std::function<bool(const Gap&)>& keep) {
  COLLECT_TRY(read_identity());
  // Gaps that do not fit are at the end of their lane only, but the other lane's may follow. What
  // is left out becomes an entry of nothing in its place: nothing is moved, so an end of the daemon
  // or of the power in the middle leaves every other entry as it is.
  slots_ = 1;
  std::pair<uint64_t, uint64_t> newest[2];  // slot, before_seq
  for (uint64_t slot = 1;; ++slot) {
    auto entry = entry_at(slot);
    if (!entry.ok()) return entry.error();
    if (*entry == nullptr) break;
    if (!holds(*entry)) continue;
    slots_ = slot + 1;
    const Gap gap = decode_gap(*entry);
    if (gap.lost == 0) continue;  // left out before
    if (!keep(gap)) {
      COLLECT_TRY(write_slot(slot, {}));
      continue;
    }
    const size_t lane = static_cast<size_t>(gap.lane);
    newest[lane] = {slot, gap.before_seq};
  }
  for (size_t lane = 0; lane < 2; ++lane) {
    newest_slot_[lane] = newest[lane].first;
    newest_before_[lane] = newest[lane].second;
  }
  block_.clear();
  if (file_ == nullptr) return {};
  unsynced_ = true;  // its writer may have ended before it was synced
  return file_->truncate(slots_ * kEntryBytes);
}

Status StreamJournal::sync() {
  if (!unsynced_) return {};
  if (file_ == nullptr && !fs_.exists(path_)) return {};
  COLLECT_TRY(ensure_open());
  COLLECT_TRY(file_->sync());
  unsynced_ = false;
  return {};
}

Status StreamJournal::remove() {
  file_.reset();
  if (!fs_.exists(path_)) return {};
  return fs_.remove_file(path_);
}

}  // namespace collect::storage
