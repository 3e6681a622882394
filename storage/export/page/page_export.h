// A capture as a page for a browser (formats/html/FORMAT.md): totals of functions, a call tree and
// what was when for each thread, and the calls as far as they can be distinguished. Of large
// threads index.lod says it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "storage/convert/convert_log.h"
#include "storage/export/exported_session.h"

namespace collect::exports {

// Browsers draw a row for each: those with the most events.
inline constexpr size_t kMaxPageThreads = 1'000;
inline constexpr size_t kMaxPageNodes = 50'000;  // of a thread's tree
// For the trees of all threads; a thread may have kLeastPageNodes in any case.
inline constexpr size_t kMaxPageNodesOfAll = 1'000'000;
inline constexpr size_t kLeastPageNodes = 500;
inline constexpr size_t kMaxPageIntervals = 2'000;  // stalls, and losses, of a thread
inline constexpr uint32_t kPageParts = 800;         // of the time, of which each has its activity
inline constexpr uint32_t kPageColumns = 1'600;     // calls within one of these are one bar
inline constexpr size_t kMaxPageBars = 60'000;      // of all threads
inline constexpr size_t kLeastPageBars = 500;       // that each thread may have in any case
// For a window with more events, all threads together, bars come from index.lod where there is one.
inline constexpr uint64_t kMaxReadEvents = 2'000'000;

struct PageOptions {
  bool can_refresh = false;   // loading it again gives a newer one
  bool is_recording = false;  // more of it comes
  bool can_ask = false;       // it is served: the page may ask for windows and detail records
  bool as_data = false;       // the data alone, as JSON, in place of the page
  bool bars_only = false;     // without trees and functions
};

Status export_page(ExportedSessions& sessions, const PageOptions& options, ByteSink& out,
                   convert::ConvertLog& log);

}  // namespace collect::exports
