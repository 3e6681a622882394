// One file of a thread, index.atf or detail.atf, while it grows: header, whole records, nothing
// else.
//
// Owned by its ThreadWriter, used on the storage thread. After a failed write the file is cut back
// to the records that were counted; if even that fails, it is tried again before the next write and
// before sealing, so what is counted and what is in the file never differ for long.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/atf/layout.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/thread/record_scan.h"

namespace collect::storage {

// Bytes read at once by what goes over a whole file. Holds at least one record of any page.
inline constexpr size_t kScanBlockBytes = kMaxPageBytes;

// A file that has become so large has blocks set aside for what comes: a quarter of its size, so
// that files that are no longer written do not hold much, and no more than this.
inline constexpr uint64_t kLeastBytesForAside = 1u << 20;
inline constexpr uint64_t kMostBytesAside = 64u << 20;

// What is in the headers of a thread's files.
struct ThreadFormat {
  atf::Version version = atf::Version::kV2;
  atf::Arch arch{};
  atf::Os os{};
  atf::ClockType clock{};
  uint32_t thread_id = 0;

  RecordFormat records() const { return {.version = version, .thread_id = thread_id}; }
};

inline ThreadFormat thread_format(const SessionIdentity& identity, uint32_t thread_id) {
  return {identity.version, identity.arch, identity.os, identity.clock, thread_id};
}

// The format that the header of an index file names.
Result<ThreadFormat> read_thread_format(Fs& fs, const std::string& index_path);

class LaneFile {
 public:
  LaneFile(Fs& fs, std::string path, Lane lane, const ThreadFormat& format)
      : fs_(fs), lane_(lane), path_(std::move(path)), format_(format) {}

  // Makes the file, with a header whose counts are zero. `has_detail`: index only.
  Status create(bool has_detail);
  // Opens the file that is there and reads it through: summary() says up to where it is whole. A
  // sealed file is taken as it is. Links that are just being replaced may run backwards, where the
  // power went in the middle; they are left out of account, and the summary's agree with nothing.
  enum class Links : uint8_t { kHold, kBeingReplaced };
  Status reopen(Links links = Links::kHold);
  // Bytes of a record or more are behind what is whole, until end_reopen().
  bool is_damaged() const { return found_bytes_ >= summary_.bytes + least_record_bytes(); }
  // Reads the first `section_bytes` again, before end_reopen().
  Status rescan(uint64_t section_bytes, Links links);
  // Cuts off what is behind the records that are whole.
  Status end_reopen();

  bool exists() const { return exists_; }
  bool sealed() const { return sealed_; }
  bool is_open() const { return file_ != nullptr; }
  void close() { file_.reset(); }  // frees the descriptor; the next use opens the file again

  const std::string& path() const { return path_; }
  const LaneSummary& summary() const { return summary_; }
  bool header_has_detail() const { return header_has_detail_; }
  uint64_t cut_bytes() const { return cut_bytes_; }  // by end_reopen(): what did not hold
  Result<File*> open_again();
  uint64_t found_bytes() const { return found_bytes_; }  // of the section, by reopen()

  // Writes the parts behind the last record; `after` is true once they are there.
  Status append(std::span<const Bytes> parts, const LaneSummary& after);
  // Keeps the records that `shorter` counts: a prefix of what is there.
  Status cut(const LaneSummary& shorter);
  // Sets or clears the flag in the index header.
  Status mark_has_detail(bool has_detail);

  // Offset 0 is the first record.
  Result<size_t> read_section(uint64_t offset, MutableBytes out);
  // Replaces bytes in place; the caller sets the summary that is true afterwards.
  Status overwrite_section(uint64_t offset, Bytes bytes);
  void set_summary(const LaneSummary& summary) { summary_ = summary; }

  // After an error it fails for good: the system forgets what it could not write, and a second call
  // would succeed without it.
  Status sync();
  // Footer, then header; with `durable` each is synced before the next step. A sync that fails does
  // not keep the file from being sealed, but its error is returned.
  Status seal(bool durable);
  Status remove();
  // Puts a sealed file of another name in place of this one.
  Status replace_by_sealed(LaneFile& replacement);

 private:
  Status ensure_open();
  uint64_t least_record_bytes() const {
    return lane_ == Lane::kIndex ? atf::kEventBytes : atf::kDetailHeaderBytes;
  }
  void set_aside(uint64_t end);
  Status restore_length();
  Status write_header(bool final_counts);
  bool understands(Bytes header) const;
  bool is_sealed_by(Bytes header, Bytes footer, uint64_t section_bytes) const;
  Status scan_file(uint64_t section_bytes, Links links);

  Fs& fs_;
  const Lane lane_;
  std::string path_;
  ThreadFormat format_;
  std::unique_ptr<File> file_;
  LaneSummary summary_;
  bool exists_ = false;
  bool sealed_ = false;
  bool header_has_detail_ = false;
  bool length_uncertain_ = false;  // a write failed, and cutting the file back did too
  uint64_t aside_end_ = 0;         // up to here blocks were asked for
  bool unsynced_ = false;
  Status sync_failure_;
  uint64_t found_bytes_ = 0;  // of the section, by reopen()
  bool header_stale_ = false;
  uint64_t cut_bytes_ = 0;
};

}  // namespace collect::storage
