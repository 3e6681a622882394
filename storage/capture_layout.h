// How a session lies in an RTC container: which streams there are and what their objects hold. A
// container stands alone: it begins with the whole manifest, so that any one of a run can be read
// without the others. STORAGE.md "Containers" is the document.
//
//   manifest   json         the whole manifest: first, and last when the session is sealed
//   changes    json         a manifest that holds only what is new: a thread, a module, a window …
//   clock      uint64le     device clock in ns, with gain and offset a time since the epoch
//   index pages, detail pages   raw   PageObject and the ring bytes, packed; on the clock
//   gaps       json         what a page says is missing before it
//   log        utf-8        a line for everything unusual
//   markers    annotate/utf-8   what a person said about a moment
//   dial9      raw          only where such a stream came: its whole frames, as they are
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "storage/session_types.h"

namespace collect::storage {

inline constexpr std::string_view kManifestStream = "manifest";
inline constexpr std::string_view kChangesStream = "changes";
inline constexpr std::string_view kClockStream = "clock";
inline constexpr std::string_view kIndexPagesStream = "index pages";
inline constexpr std::string_view kDetailPagesStream = "detail pages";
inline constexpr std::string_view kGapsStream = "gaps";
inline constexpr std::string_view kLogStream = "log";
inline constexpr std::string_view kMarkersStream = "markers";

// In front of the bytes of a page; little-endian. Containers of 0.1 before the packing have the
// bytes as they are.
struct PageObject {        // 72 bytes
  uint32_t stream_id;      //  0
  uint16_t header_bytes;   //  4  of this header: later versions may append fields
  uint8_t lane;            //  6  Lane
  uint8_t flags;           //  7  kPageObjectPreRoll, kPageObjectPacked
  uint32_t record_count;   //  8
  uint32_t bytes_crc32c;   // 12  of the ring bytes
  uint32_t lost_reasons;   // 16
  uint32_t raw_bytes;      // 20  how many those are, where they are packed; else zero
  uint64_t first_seq;      // 24  as Page
  uint64_t lost_total;     // 32
  uint64_t lost_first_ns;  // 40
  uint64_t lost_last_ns;   // 48
  uint64_t first_ns;       // 56
  uint64_t last_ns;        // 64
};
static_assert(sizeof(PageObject) == 72 && offsetof(PageObject, last_ns) == 64);
inline constexpr uint8_t kPageObjectPreRoll = 1;
inline constexpr uint8_t kPageObjectPacked = 2;  // page_columns.h

}  // namespace collect::storage
