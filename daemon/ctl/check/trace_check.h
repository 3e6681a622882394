// All checks on an opened trace: files and links (formats/atf/check.h) and what the manifest says
// about them. verify and inspect print it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/check.h"
#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"

namespace collect::ctl {

struct ManifestFinding {
  Severity severity{};
  std::string place;  // a JSON pointer; empty for the whole file
  std::string sentence;
  std::string path{};  // of another file than the manifest; empty: it is that
};

struct TraceReport {
  std::vector<atf::ThreadReport> threads;  // in the order of Trace::threads
  std::optional<read::SessionManifest> manifest;
  std::vector<ManifestFinding> manifest_findings;
  bool is_session = false;  // not one thread or file of it
  atf::Grade grade{};  // FORMAT.md "Grades"; a manifest that contradicts the files is damage too

  uint64_t events() const;
  uint64_t detail_records() const;
  uint64_t lost_events() const;  // of these threads, as the manifest says
  // For a session: what its manifest says. Nothing for single files and other programs' sessions.
  std::optional<storage::SessionHealth> health;
  // Sealed, with everything that the program counted. Files alone: sealed.
  bool is_complete() const;
  // "ok", or what it is instead: the grade of the files, or the state of the session.
  std::string_view result() const;
  std::optional<uint64_t> first_ns() const;
  std::optional<uint64_t> last_ns() const;
  uint64_t count(Severity severity) const;
};

// `progress` is called before each thread, with its position and the number of threads.
TraceReport check_trace(const read::Trace& trace,
                        const std::function<void(size_t, size_t)>& progress);

// Says which files are there and were not opened, or not to their end; whether there is one of a
// thread.
bool say_unopened(const read::Trace& trace, std::ostream& err);

// A progress line on a terminal; says nothing before `err` has something worth waiting for.
std::function<void(size_t, size_t)> progress_line(std::ostream& err, bool wanted);

}  // namespace collect::ctl
