// Pages that no collector takes at present, in a bounded file on the device's own storage: a log
// whose room is given back in the order in which pages came. AGENT.md "Spool" has the rules.
//
// The file is unlinked as soon as it is open: it ends with the process that drains, and no one else
// finds it. What is known of its pages is in memory alone, in a table that is touched as far as
// it is used.
//
// Drain thread only. Nothing allocates but open(), which maps the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/transport/descriptor.h"
#include "formats/core/bytes.h"
#include "proto/wire/layout.h"

namespace collect::agent {

// A page of fewer bytes takes a place in the table all the same: so much of the file has one.
inline constexpr uint32_t kSpoolBytesPerPage = 2048;
// After the storage refused a page, before it is asked again.
inline constexpr uint64_t kSpoolRetryMs = 1000;

using SpoolRef = uint32_t;  // place in the table + 1; 0: none

// One lane's pages in the spool, in the order of their records. Zeroes: none yet.
struct SpoolChain {
  SpoolRef first;    // the oldest that is held
  SpoolRef last;     // the newest
  SpoolRef send;     // the next one to be sent on this link
  uint64_t end_seq;  // everything below was spooled once, if it was not sent before
};

class Spool {
 public:
  // In the place of one that is open, which has to be empty. Null, or a static sentence, with
  // `*error` an errno or 0: what was open before still is.
  const char* open(const char* directory, uint32_t megabytes, int* error);
  // Gives everything back. In a forked child too, whose parent continues.
  void close();
  bool is_open() const { return file_.is_open(); }

  // Puts a page behind the others of `chain`; whether it is to be sent on this link, and `send` has
  // to lead to it, is the caller's to know. `page` is as it will be sent; `page.raw_bytes` is at
  // most 64 KiB, and so is `sent`. False: there is no room, or the storage refuses.
  bool append(SpoolChain& chain, const PageHeader& page, Bytes sent, uint64_t now_ms);
  // Whether there is a use in append(), as far as is known.
  bool takes(uint64_t now_ms) const {
    return limit_ != 0 && (full_since_ms_ == 0 || (retry_at_ms_ != 0 && now_ms >= retry_at_ms_));
  }
  // It takes no more than so many bytes from now on, at most capacity(); what it holds stays. 0: it
  // takes nothing.
  void set_limit(uint64_t bytes);
  uint64_t limit() const { return limit_; }  // 0 also while it is not open
  // When it last took no more; 0: it does.
  uint64_t full_since_ms() const { return full_since_ms_; }

  const PageHeader& page(SpoolRef ref) const { return entry(ref).page; }
  uint32_t sent_bytes(SpoolRef ref) const { return entry(ref).bytes; }
  SpoolRef next(SpoolRef ref) const { return entry(ref).next; }
  // Reads sent_bytes(ref) of them into `out`; false when the storage does not give them back whole.
  bool read(SpoolRef ref, uint8_t* out) const;

  // The next page to be sent is the one that holds `next_seq`, or the first one after it.
  void rewind(SpoolChain& chain, uint64_t next_seq) const;
  // Everything below `next_seq` is stored at the collector.
  void acknowledge(SpoolChain& chain, uint64_t next_seq);
  void release(SpoolChain& chain);

  bool is_empty() const { return tail_ == head_; }
  uint64_t bytes() const { return bytes_; }  // of pages that are held
  uint64_t capacity() const { return capacity_; }

 private:
  struct Entry {
    PageHeader page;
    uint64_t position;  // in the log, which the file holds the last capacity_ bytes of
    uint32_t bytes;
    SpoolRef next;  // of the same lane
    bool is_held;
  };

  Entry& entry(SpoolRef ref) const { return entries_[ref - 1]; }
  Entry& entry_at(uint64_t number) const { return entries_[number % entry_count_]; }
  static uint64_t end_seq(const Entry& entry) {
    return entry.page.first_seq + entry.page.record_count;
  }
  bool write(Bytes sent, uint64_t position) const;
  void give_back(Entry& entry);
  void give_back_first(SpoolChain& chain);

  Descriptor file_;
  Entry* entries_ = nullptr;
  uint64_t entry_count_ = 0;
  uint64_t capacity_ = 0;  // of the file
  uint64_t limit_ = 0;
  // Numbers of the oldest entry and of the one after the newest.
  uint64_t tail_ = 0;
  uint64_t head_ = 0;
  uint64_t head_position_ = 0;
  uint64_t bytes_ = 0;
  uint64_t full_since_ms_ = 0;
  uint64_t retry_at_ms_ = 0;  // the storage refused; 0: it did not
};

}  // namespace collect::agent
