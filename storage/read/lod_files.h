// index.lod of the threads of a session (formats/calls/LOD.md): found, made where it is missing,
// and used for reading the calls of a window.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/reader.h"
#include "formats/calls/lod/lod_reader.h"
#include "formats/calls/read_thread.h"
#include "storage/read/session_files.h"

namespace collect::read {

// The LOD of one thread, valid as long as its Trace.
struct ThreadLod {
  calls::LodReader reader;
  std::unique_ptr<calls::LodSummary> summary;
};

// Nothing where there is none, and where it is damaged, of another state of the thread, or has
// totals that no such thread can have.
std::optional<ThreadLod> find_lod(const TraceThread& files, const atf::IndexReader& index,
                                  const std::vector<calls::Gap>& gaps,
                                  const std::vector<calls::Stall>& stalls);

struct LodProblem {
  std::string sentence;
  bool is_used = false;  // find_lod() takes the file all the same
};

// Where the file is there and does not say, byte for byte, what the events say: they are all read.
std::optional<LodProblem> problem_of_lod(const TraceThread& files, const atf::IndexReader& index,
                                         const std::vector<calls::Gap>& gaps,
                                         const std::vector<calls::Stall>& stalls);

// The files that are missing or stale, of threads that are large enough, on all cores; `trace` has
// them then. Nothing is done for a session that is not one of ours, or not sealed yet. The first
// error is returned; what could be made is there.
Status make_lods(Trace& trace, const std::function<void(size_t, size_t)>& progress);

// As calls::read_thread(), without the events before the window where `files` say how.
template <class Sink>
void read_calls(const TraceThread* files, const atf::IndexReader& index,
                const std::vector<calls::Gap>& gaps, const std::vector<calls::Stall>& stalls,
                const calls::Window& window, calls::ThreadCalls<Sink>& calls) {
  if (files != nullptr && window.first_ns != 0) {
    const auto lod = find_lod(*files, index, gaps, stalls);
    if (lod && read_window(index, gaps, lod->reader, *lod->summary, window, calls).ok()) return;
  }
  calls::read_thread(index, gaps, calls);
}

}  // namespace collect::read
