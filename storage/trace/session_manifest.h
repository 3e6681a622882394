// What manifest.json says: threads, losses, totals, and names for function ids. Lenient, because
// published writers leave control characters raw; what is missing keeps its default, what is wrong
// becomes a sentence in `problems`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/result.h"
#include "storage/session_health.h"

namespace collect::trace {

struct ManifestThread {
  uint32_t id = 0;
  std::optional<bool> has_detail;
  bool ended = false;
  std::optional<uint32_t> thread_id;
  std::string name;
  std::optional<uint64_t> events;
  std::optional<uint64_t> detail_records;
  std::optional<uint64_t> lost_events;
  std::optional<uint64_t> lost_detail_records;
};

struct ManifestModule {
  uint32_t module_id = 0;
  std::string path;
};

// Where a function stands in its source.
struct SourceLocation {
  std::string file;  // empty: not known
  uint32_t line = 0;
};

struct ManifestSymbol {
  uint64_t function_id = 0;
  std::string name;
  SourceLocation source{};
};

struct ManifestGap {
  uint32_t thread = 0;
  bool detail_lane = false;
  uint64_t lost = 0;
  std::optional<uint64_t> before_seq;  // number of the first record behind it
  uint64_t first_ns = 0;               // of the records that are missing; 0: not known
  uint64_t last_ns = 0;
};

struct ManifestProblem {
  std::string place;  // a JSON pointer, as "/symbols/3/function_id"
  std::string sentence;
};

struct SessionManifest {
  static constexpr size_t kMaxProblems = 100;

  // kDamaged: not JSON even with raw control characters and bad UTF-8 forgiven, or no list of
  // threads.
  static Result<SessionManifest> parse(std::string_view text);

  const ManifestThread* thread(uint32_t id) const;
  // Nothing of other programs' manifests, which have no state. session_health() asks for the one of
  // a session on disk.
  std::optional<storage::SessionHealth> health() const;
  storage::StallTotals stall_totals() const;

  std::string format_version;
  std::string reason;
  std::string state;  // "recording", "complete", "recovered", "failed"; empty in files of others
  std::string process_name;
  std::vector<ManifestThread> threads;
  std::unordered_map<uint32_t, size_t> positions;  // thread id -> position in `threads`
  std::vector<ManifestModule> modules;
  std::vector<ManifestSymbol> symbols;
  std::vector<ManifestGap> gaps;       // by thread
  std::vector<storage::Stall> stalls;  // those of every thread first, then by thread and time
  std::optional<uint64_t> total_events;
  std::optional<uint64_t> total_detail_records;
  std::optional<uint64_t> total_lost_events;
  std::optional<uint64_t> total_lost_detail_records;
  uint64_t lost_without_stream = 0;
  std::vector<storage::MissingInput> input_missing;
  uint64_t input_missing_left_out = 0;
  uint64_t time_start_ns = 0;
  uint64_t time_end_ns = 0;
  std::vector<ManifestProblem> problems;
};

struct Trace;

// Of the session that was opened; `manifest` is what could be read of its manifest, if anything.
// Nothing of single files, and of other programs' sessions.
std::optional<storage::SessionHealth> session_health(const Trace& trace,
                                                     const SessionManifest* manifest);

// Names for function ids: the manifest's symbol, else "module+0xoffset", else "0xid".
class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(const SessionManifest& manifest);
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  // Valid until the next call. Not thread-safe: it keeps the last answers.
  std::string_view name_of(uint64_t function_id) const;
  // The same without the memory: for several threads at once.
  void append_name(std::string& to, uint64_t function_id) const;
  // Null where it is not known.
  const SourceLocation* source_of(uint64_t function_id) const;
  // "libz.so"; of a module without a path its number, as 0x1f.
  std::string module_name_of(uint32_t module_id) const;

 private:
  void append_unnamed(std::string& to, uint64_t function_id) const;
  static constexpr int kCacheBits = 12;
  struct Cached {
    uint64_t function_id = 0;
    const std::string* name = nullptr;  // in symbols_
  };
  std::unordered_map<uint64_t, std::string> symbols_;
  std::unordered_map<uint64_t, SourceLocation> sources_;
  std::unordered_map<uint32_t, std::string> modules_;  // file names without folders
  mutable std::array<Cached, size_t{1} << kCacheBits> cache_{};
  mutable std::string made_;
};

}  // namespace collect::trace
