// What manifest.json of any writer says, and names for function ids. Lenient, because published
// writers leave control characters raw; what is missing keeps its default, what is wrong becomes a
// sentence in `problems`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/result.h"
#include "storage/manifest/session_health.h"

namespace collect::read {

using storage::ManifestThread;

struct Trace;

// The manifest of any writer's session.
struct SessionManifest : storage::Manifest, storage::ManifestReading {
  // kDamaged, kLimit: as storage::manifest_from_json().
  static Result<SessionManifest> parse(std::string_view text);
  // With the times off the processor, of a trace that has a manifest. Where they cannot be read, it
  // is as one without: `no_switches` says why, and `problems`.
  static Result<SessionManifest> of(const Trace& trace);

  // Of that problem.
  static constexpr std::string_view kSwitchesPlace = "/process/switches";

  const ManifestThread* thread(uint32_t id) const;
  // Nothing of other programs' manifests, which have no state. session_health() asks for the one of
  // a session on disk.
  std::optional<storage::SessionHealth> health() const;
  storage::StallTotals stall_totals() const;

  // Gaps are sorted by thread; stalls, those of every thread first, by thread and time.
  std::unordered_map<uint32_t, size_t> positions;  // thread id -> position in `threads`

 private:
  void sort_stalls();
  void add_switches(const Trace& trace);
};

// Where a function is in its source.
struct SourceLocation {
  std::string file;  // empty: not known
  uint32_t line = 0;
};

// The health of the session that was opened; `manifest` is what could be read of its manifest, if
// anything. Nothing for single files and other programs' sessions.
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
  // name_of() without the memory: for several threads at once.
  void append_name(std::string& to, uint64_t function_id) const;
  // The manifest names it.
  bool is_named(uint64_t function_id) const { return symbols_.contains(function_id); }
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

}  // namespace collect::read
