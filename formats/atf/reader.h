// Readers of index.atf and detail.atf over bytes that the caller maps and keeps alive. They read
// what is there as far as it holds, finalized or not, and say in Findings what they did not
// believe. No allocation is ever sized by a number from the file: counts are capped by the bytes
// that exist.
//
// Opening costs the header and the footer only; check.h looks at everything. Const functions may be
// called from any thread, except where it says otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/atf/finding.h"
#include "formats/atf/headers.h"
#include "formats/core/bytes.h"

namespace collect::atf {

enum class FileState : uint8_t {
  kFinalized,    // footer where the header says
  kStaleHeader,  // footer at the end of the file, header from before it was written
  kUnfinalized,  // no footer: counts come from the file's size
};

enum class ChecksumState : uint8_t {
  kNone,       // no footer, so no checksum
  kUnchecked,  // 0 is stored
  kGood,
  kOtherAlgorithm,  // good, but by the other version's polynomial
  kBad,
};

std::string_view to_text(FileState state);  // "finalized", "stale-header", "unfinalized"
std::string_view to_text(
    ChecksumState state);             // "none", "unchecked", "ok", "other-algorithm", "bad"
std::string_view to_text(Arch arch);  // "x86_64", or "unknown"
std::string_view to_text(Os os);
std::string_view to_text(ClockType clock);
std::string_view to_text(EventKind kind);  // "call", "return", "exception", "unknown"

// Events as they are in the file; a copy is two words. `for_each` calls f(seq, IndexEvent) with the
// version decided once, outside the loop, so that the compiler sees fixed-offset loads.
class EventSpan {
 public:
  EventSpan(Version version, Bytes bytes, uint64_t first_seq)
      : version_(version), bytes_(bytes), first_seq_(first_seq) {}

  uint64_t size() const { return bytes_.size() / kEventBytes; }
  uint64_t first_seq() const { return first_seq_; }
  Bytes bytes() const { return bytes_; }
  Version version() const { return version_; }
  // `from` counts from the span's first one.
  EventSpan part(uint64_t from, uint64_t count) const {
    return {version_, bytes_.subspan(from * kEventBytes, count * kEventBytes), first_seq_ + from};
  }

  template <class F>
  void for_each(F&& f) const {
    if (version_ == Version::kV1) {
      walk<Version::kV1>(f);
    } else {
      walk<Version::kV2>(f);
    }
  }

 private:
  template <Version kVersion, class F>
  void walk(F& f) const {
    uint64_t seq = first_seq_;
    const uint8_t* const end = bytes_.data() + size() * kEventBytes;
    for (const uint8_t* at = bytes_.data(); at != end; at += kEventBytes, ++seq) {
      f(seq, decode_index_event(kVersion, at));
    }
  }

  Version version_;
  Bytes bytes_;
  uint64_t first_seq_;
};

// Makes the bytes [offset, offset + out.size()) of a file. Of a file whose bytes are made when they
// are read, a pass over all of it is spared their mapping so. Any thread, several at once.
using BringBytes = std::function<void(uint64_t offset, MutableBytes out)>;

// Brought at once, from a multiple of it in the file.
inline constexpr uint64_t kBroughtBytes = uint64_t{1} << 20;

class EventBlocks;

class IndexReader {
 public:
  // Absent when nothing can be read; the reason, and what is wrong with what can, is in `findings`.
  // `bring`, which outlives the reader, is for blocks(); null: they are read where they are.
  static std::optional<IndexReader> open(Bytes file, Findings& findings,
                                         const BringBytes* bring = nullptr);

  const IndexHeader& header() const { return header_; }
  const std::optional<IndexFooter>& footer() const { return footer_; }
  Version version() const { return header_.version; }
  FileState state() const { return state_; }
  bool has_detail_flag() const { return (header_.flags & kIndexFlagHasDetailFile) != 0; }

  // min(what the footer says, what is there).
  uint64_t size() const { return size_; }
  // Bytes of a half-written event at the end of an unfinalized file.
  uint64_t trailing_bytes() const { return section_.size() % kEventBytes; }
  uint64_t footer_offset() const { return header_.events_offset + section_.size(); }
  uint64_t offset_of(uint64_t seq) const { return header_.events_offset + seq * kEventBytes; }

  // Constant time. `event` needs seq < size(); `get` does not.
  IndexEvent event(uint64_t seq) const {
    return decode_index_event(header_.version, section_.data() + seq * kEventBytes);
  }
  std::optional<IndexEvent> get(uint64_t seq) const {
    if (seq >= size_) return std::nullopt;
    return event(seq);
  }
  uint64_t time_of(uint64_t seq) const {  // seq < size()
    return load_le<uint64_t>(section_.data() + seq * kEventBytes);
  }

  EventSpan events() const { return events(0, size_); }
  EventSpan events(uint64_t first, uint64_t count) const;
  // For one pass, on one thread.
  EventBlocks blocks() const;

  // Reads the whole section.
  ChecksumState checksum() const;
  // For a caller that reads it anyway: `computed` is section_checksum() of section_bytes().
  ChecksumState checksum(uint32_t computed) const;
  // What the checksum covers: the events, and what a wrong footer leaves behind them.
  Bytes section_bytes() const { return section_; }

 private:
  IndexReader() = default;
  void find_footer(Bytes file);
  void compare_footer(Bytes file, Findings& findings) const;

  IndexHeader header_;
  std::optional<IndexFooter> footer_;
  FileState state_ = FileState::kUnfinalized;
  Bytes section_;  // from events_offset to the footer, or to the end of the file
  uint64_t size_ = 0;
  const BringBytes* bring_ = nullptr;
};

// The events of a pass, which it asks for in order: where they are, or a block of the file after
// the other in memory of its own.
class EventBlocks {
 public:
  EventBlocks(const IndexReader& index, const BringBytes* bring) : index_(index), bring_(bring) {}

  // Calls f(EventSpan) for the events [first, end) in turn; end <= size(). A span is good within
  // the call.
  template <class F>
  void for_each_span(uint64_t first, uint64_t end, F&& f) {
    if (bring_ == nullptr) {
      if (first < end) f(index_.events(first, end - first));
      return;
    }
    while (first < end) {
      const EventSpan span = bring(first, end);
      f(span);
      first += span.size();
    }
  }

  // As IndexReader::events().for_each().
  struct Range {
    EventBlocks& blocks;
    uint64_t first;
    uint64_t count;

    template <class F>
    void for_each(F&& f) const {
      blocks.for_each_span(first, first + count, [&f](const EventSpan& span) { span.for_each(f); });
    }
  };
  Range events(uint64_t first, uint64_t count) { return {*this, first, count}; }

 private:
  // As many as one block has, at least one.
  EventSpan bring(uint64_t first, uint64_t end);

  const IndexReader& index_;
  const BringBytes* const bring_;
  std::vector<uint8_t> block_;
  uint64_t begin_ = 0;  // of the block in the file
};

inline EventBlocks IndexReader::blocks() const {
  return {*this, bring_};
}

// Walks detail records front to back without memory. Stops for good at a record that is shorter
// than its header or reaches beyond the section.
class DetailCursor {
 public:
  DetailCursor(Version version, Bytes section, uint64_t section_offset)
      : version_(version), section_(section), section_offset_(section_offset) {}

  std::optional<DetailRecord> next();
  // In the file, of the record that next() returns next.
  uint64_t offset() const { return section_offset_ + at_; }
  uint64_t seq() const { return seq_; }  // of the record that next() returns next
  uint64_t consumed_bytes() const { return at_; }

 private:
  Version version_;
  Bytes section_;
  uint64_t section_offset_;
  uint64_t at_ = 0;
  uint64_t seq_ = 0;
};

class DetailReader {
 public:
  static std::optional<DetailReader> open(Bytes file, Findings& findings);

  const DetailFileHeader& header() const { return header_; }
  const std::optional<DetailFooter>& footer() const { return footer_; }
  Version version() const { return header_.version; }
  FileState state() const { return state_; }
  uint64_t section_bytes() const { return section_.size(); }
  Bytes section() const { return section_; }  // all records
  uint64_t bytes_after_footer() const { return bytes_after_footer_; }

  DetailCursor records() const {
    return DetailCursor(header_.version, section_, header_.events_offset);
  }

  // The first call of size(), and the first of the other two, walks the file once; afterwards each
  // is O(1). get() and offset_of() keep 8 bytes per record (a record has at least 24, so that is at
  // most a third of the file). Those first calls must not run on two threads at once.
  uint64_t size() const;
  std::optional<DetailRecord> get(uint64_t seq) const;
  std::optional<uint64_t> offset_of(uint64_t seq) const;

  ChecksumState checksum() const;
  // For a caller that reads it anyway: `computed` is section_checksum() of section().
  ChecksumState checksum(uint32_t computed) const;

 private:
  DetailReader() = default;
  void find_footer(Bytes file);
  const std::vector<uint64_t>& offsets() const;

  DetailFileHeader header_;
  std::optional<DetailFooter> footer_;
  FileState state_ = FileState::kUnfinalized;
  Bytes section_;
  uint64_t bytes_after_footer_ = 0;
  mutable std::optional<uint64_t> size_;
  mutable std::optional<std::vector<uint64_t>> offsets_;  // of records within section_
};

}  // namespace collect::atf
