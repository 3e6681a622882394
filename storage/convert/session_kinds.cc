#include "storage/convert/session_kinds.h"

#include <algorithm>

namespace collect::convert {
namespace {

template <class List, class Is>
uint64_t count_if(const List& list, const Is& is) {
  return static_cast<uint64_t>(std::ranges::count_if(list, is));
}

}  // namespace

void leave_out_kinds(const storage::Manifest& manifest, uint32_t lacking, const SessionPart& part,
                     ConvertLog& log) {
  const auto is_in = [&](uint64_t first_ns, uint64_t last_ns) {
    return first_ns <= part.last_ns && last_ns >= part.first_ns;
  };
  const auto has = [&](uint32_t thread) { return !part.has_thread || part.has_thread(thread); };
  const auto leave_out = [&](SessionKind kind, const char* what, const auto& count) {
    if ((lacking & kind) != 0) log.leave_out(what, count());
  };
  leave_out(kMarkersKind, "markers", [&] {
    return count_if(manifest.markers, [&](const auto& one) { return is_in(one.at_ns, one.at_ns); });
  });
  leave_out(kDetailRecordsKind, "detail records", [&] {
    uint64_t records = 0;
    for (const auto& thread : manifest.threads) {
      if (has(thread.id)) records += thread.detail_records;
    }
    return records;
  });
  leave_out(kDetailLossesKind, "losses of detail records", [&] {
    return count_if(manifest.gaps, [&](const storage::Gap& gap) {
      return gap.lane == Lane::kDetail && has(gap.thread);
    });
  });
  leave_out(kStallsKind, "stalls", [&] {
    uint64_t stalls = 0;
    for (const storage::Stall& stall : manifest.stalls) {
      if (storage::is_in_switches_file(stall.kind)) continue;
      const bool is_ours = !stall.thread || has(*stall.thread);
      if (is_ours && is_in(stall.first_ns, stall.last_ns)) stalls += stall.count;
    }
    return stalls;
  });
  const auto sum_of_threads = [&](uint64_t storage::StallTotals::* number) {
    uint64_t sum = 0;
    for (const auto& thread : manifest.threads) {
      if (has(thread.id)) sum += thread.stalls.*number;
    }
    return sum;
  };
  leave_out(kSwitchesKind, "times off the processor",
            [&] { return sum_of_threads(&storage::StallTotals::switches); });
  leave_out(kSamplesKind, "samples of where threads ran",
            [&] { return sum_of_threads(&storage::StallTotals::samples); });
  leave_out(kLockWaitsKind, "waits for locks, with their owners",
            [&] { return sum_of_threads(&storage::StallTotals::lock_waits); });
  leave_out(kSourceLinesKind, "source lines of functions", [&] {
    return count_if(manifest.symbols, [](const auto& symbol) { return !symbol.file.empty(); });
  });
  leave_out(kThreadEndsKind, "ends of threads", [&] {
    return count_if(manifest.threads, [&](const auto& thread) {
      // One that ended with its last event has its end there.
      return thread.ended && thread.end_ns != 0 && thread.end_ns != thread.last_ns &&
             has(thread.id) && is_in(thread.end_ns, thread.end_ns);
    });
  });
  leave_out(kProcessEndKind, "end of the process", [&] {
    return uint64_t{manifest.process_end.how != storage::ProcessEnd::How::kNotKnown};
  });
  leave_out(kClocksKind, "comparisons of clocks", [&] { return manifest.clock_syncs.size(); });
  leave_out(kModulesKind, "modules", [&] { return manifest.modules.size(); });
  leave_out(kNotesKind, "log lines of the session", [&] { return manifest.notes.size(); });
  leave_out(kDetailWindowsKind, "detail windows", [&] { return manifest.detail_windows.size(); });
  leave_out(kFiltersKind, "function filters", [&] { return manifest.function_filters.size(); });
  leave_out(kStreamsKind, "streams of other formats",
            [&] { return uint64_t{manifest.has_stream_of_others()}; });
}

}  // namespace collect::convert
