// stream.journal of a thread: which stream it is, every gap of its two lanes, and its stalls, each
// written before the page that follows it. Lives as long as the session is not sealed.
//
// Without it, a crash between a page and the next manifest would leave positions that are too low:
// the agent would send again what is stored, unnoticed. It is exact where the manifest
// merges, so the relink pass maps record numbers to file positions by it.
//
// A list of 64-byte entries, little-endian, each beginning with the CRC-32C of its other 60 bytes.
// The first: u32 stream_id, u64 start_ns, 48 bytes of name, zero-padded. The others: u32 reasons,
// u8 lane, u8 0, 14 zero, u64 before_seq, lost, numbered_lost, first_ns, last_ns. One that lost
// nothing is where a gap was left out. Of a stall: u32 kind, u8 0, u8 1, 14 zero, u64 count, 0,
// stalled_ns, first_ns, last_ns. Of a repair (thread_repair.h), in the first slot: u8 2 in the
// place of a stall's 1 while it has to be ended, then 3, and else zeros. An entry is within one
// sector, so only the last one can be torn; one before it whose checksum is wrong is damaged, and
// represents nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::storage {

struct StreamIdentity {
  uint32_t stream_id = 0;
  uint64_t start_ns = 0;
  std::string thread_name;  // the journal keeps 48 bytes of it
};

class StreamJournal {
 public:
  StreamJournal(Fs& fs, const std::string& directory, const char* name);

  Status create(const StreamIdentity& identity);
  // Creates a journal in place of another: its first slot says that the files of the thread are to
  // be replaced too. Without an identity the journal has none.
  Status create_replacing(const StreamIdentity* identity);
  Result<bool> is_replacing() { return has_repair_entry(kReplacing); }
  Status end_replacing() { return put_repair_entry(kReplaced); }
  // Places of gaps may be others than those of an older manifest.
  Result<bool> was_replaced() { return has_repair_entry(kReplaced); }
  // Reads what is there, leaves out the gaps that do not fit (`keep` says no) and everything torn,
  // and continues behind them. Can be interrupted anywhere and done again. The identity is absent
  // when it cannot be read.
  Status reopen(const std::function<bool(const Gap&)>& keep);
  Status read_identity();
  const std::unique_ptr<StreamIdentity>& identity() const { return identity_; }
  // Every entry but a torn last one holds; false where there is no journal. Changes nothing.
  Result<bool> is_whole();

  // Appends, or replaces the newest gap of that lane when it is before the same record.
  Status put(const Gap& gap, bool sync);
  bool would_replace(const Gap& gap) const {
    const size_t lane = static_cast<size_t>(gap.lane);
    return newest_slot_[lane] != 0 && newest_before_[lane] == gap.before_seq;
  }
  Status put(const Stall& stall);
  // The entry of that number, from 0; false behind the last one. One of a gap that was left out, of
  // a stall, or that is damaged, has lost nothing. Reads blocks, so entries asked in order cost
  // little.
  Result<bool> read(uint64_t number, Gap& gap, std::optional<Stall>* stall = nullptr);

  // Whether put() made the file, since the last call: its directory is to be synced.
  bool take_new() { return std::exchange(is_new_, false); }
  Status sync();  // nothing to do when nothing was written since
  bool is_open() const { return file_ != nullptr; }
  void close() {
    file_.reset();
    block_.clear();  // what is opened next may be another file
  }
  Status remove();

 private:
  enum RepairEntry : uint8_t { kReplacing = 2, kReplaced = 3 };
  Result<bool> has_repair_entry(RepairEntry kind);
  Status put_repair_entry(RepairEntry kind);
  Status ensure_open();
  Result<const uint8_t*> entry_at(uint64_t slot);  // null behind the end; it may not hold
  Status write_slot(uint64_t slot, const Gap& gap);

  Fs& fs_;
  const std::string path_;
  std::unique_ptr<File> file_;
  std::unique_ptr<StreamIdentity> identity_;
  std::vector<uint8_t> block_;  // what reading holds; empty when the file changed
  uint64_t block_first_slot_ = 0;
  uint64_t slots_ = 1;  // the first is the identity's
  uint64_t newest_slot_[2] = {};
  uint64_t newest_before_[2] = {};
  bool unsynced_ = false;
  bool is_new_ = false;
};

}  // namespace collect::storage
