// One session on disk: its directory, thread files, manifest and seal. STORAGE.md has the picture.
//
// Owned by one storage thread: every function is called there and may block on the disk. It knows
// files and formats; it knows neither sockets nor protobuf: ingest translates.
//
// Order of the promises: a page is written only after the manifest on disk names its session, its
// thread and the modules given before it, so whatever was stored can be read, whatever happens next.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/result.h"
#include "storage/fs.h"

namespace collect::storage {

enum class Durability : uint8_t {
  kOs,     // stored means: survives the end of the daemon
  kFsync,  // stored means: survives power loss
};

enum class SessionState : uint8_t { kRecording, kComplete, kRecovered, kFailed };

struct SessionIdentity {
  std::array<uint8_t, 16> process_id{};  // of the agent, random; with `recording` it names the session
  uint32_t recording = 0;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string process_name;
  std::string executable;
  std::string device_id;
  std::string device_model;
  std::string boot_id;
  std::string tag;
  std::string agent_version;
  atf::Arch arch{};
  atf::Os os{};
  atf::ClockType clock{};
  atf::Version version = atf::Version::kV2;
  uint64_t start_ns = 0;       // device clock
  uint64_t start_unix_ns = 0;  // device's idea of the time of day
};

struct ModuleInfo {
  uint32_t module_id = 0;
  std::string path;  // as the device said it: shown, never opened without its build id (symbols.h)
  std::vector<uint8_t> build_id;
  uint64_t base_address = 0;
  uint64_t size = 0;
  uint64_t loaded_ns = 0;
  uint64_t unloaded_ns = 0;
};

struct StreamInfo {
  uint32_t stream_id = 0;
  uint32_t thread_id = 0;
  std::string thread_name;
  uint64_t start_ns = 0;
};

enum class Lane : uint8_t { kIndex = 0, kDetail = 1 };

// Ring bytes that were checked against `bytes_crc32c` already. The bytes are borrowed for the call.
// Fields as in wire/layout.h PageHeader.
struct Page {
  uint32_t stream_id = 0;
  Lane lane = Lane::kIndex;
  bool pre_roll = false;
  uint64_t first_seq = 0;
  uint32_t record_count = 0;
  uint32_t bytes_crc32c = 0;
  uint32_t lost_reasons = 0;
  uint64_t lost_total = 0;
  uint64_t lost_first_ns = 0;
  uint64_t lost_last_ns = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  Bytes bytes;
};

struct StreamEnd {
  uint32_t stream_id = 0;
  std::string thread_name;
  uint64_t end_ns = 0;
  uint64_t index_count = 0;
  uint64_t index_lost = 0;
  uint64_t detail_count = 0;
  uint64_t detail_lost = 0;
};

struct DetailStateChange {
  std::string mode;  // "off", "armed", "on"
  uint64_t at_ns = 0;
  uint64_t pre_roll_from_ns = 0;
  uint64_t pre_roll_records = 0;
  std::string reason;
};

// Device clock = collector's CLOCK_BOOTTIME + offset_ns, at collector time `at_ns`.
struct ClockSync {
  uint64_t at_ns = 0;
  int64_t offset_ns = 0;
  uint64_t uncertainty_ns = 0;
  double drift_ppb = 0;
};

// What the collector wants next of a stream; everything below is stored. In the numbering of the
// agent, which counts overwritten records too.
struct StreamPosition {
  uint32_t stream_id = 0;
  uint64_t index_next = 0;
  uint64_t detail_next = 0;
};

struct SessionTotals {
  uint32_t threads = 0;
  uint64_t events = 0;
  uint64_t detail_records = 0;
  uint64_t lost_events = 0;
  uint64_t lost_detail_records = 0;
  uint64_t stored_bytes = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
};

struct SessionOptions {
  std::string root;
  Durability durability = Durability::kOs;
  bool symbolize = true;            // look names up at seal time
  std::vector<std::string> symbol_directories;  // searched by build id and by file name
};

// Limits of one session; a peer that goes beyond gets kLimit.
inline constexpr uint32_t kMaxThreads = 65536;
inline constexpr uint32_t kMaxModules = 16384;
inline constexpr uint32_t kMaxGapsPerThread = 1024;  // later ones are merged into the last, exactly
                                                     // counted
inline constexpr uint32_t kMaxDetailWindows = 4096;

class SessionWriter {
 public:
  // Makes <root>/session_…/pid_<pid>/ and its first manifest. Distinct names within one second.
  static Result<std::unique_ptr<SessionWriter>> create(Fs& fs, const SessionOptions& options,
                                                       SessionIdentity identity);
  // Opens an unsealed session directory again, cut back to whole records.
  static Result<std::unique_ptr<SessionWriter>> resume(Fs& fs, const SessionOptions& options,
                                                       const std::string& directory);
  virtual ~SessionWriter() = default;

  virtual const std::string& directory() const = 0;  // absolute
  virtual const std::string& name() const = 0;       // "session_YYYYMMDD_HHMMSS/pid_N"
  virtual const SessionIdentity& identity() const = 0;

  // Repeats of what is known already are taken silently: agents explain everything again after a
  // reconnect.
  virtual Status add_modules(std::span<const ModuleInfo> modules) = 0;
  virtual Status open_stream(const StreamInfo& stream) = 0;

  // Stores the pages in order; neighbouring pages of one file become one gathering write. A page
  // that is stored already is skipped, one that is stored in part is cut, one that begins beyond the
  // next record leaves a gap of kLostForgotten or kLostOverwritten in the manifest. kDamaged: the
  // bytes are not records (counts, lengths, kinds, times running backwards are the peer's fault);
  // nothing of that page was stored. kNoSpace, kIo: as much as was written stays counted.
  virtual Status append_pages(std::span<const Page> pages) = 0;

  virtual Status close_stream(const StreamEnd& end) = 0;
  virtual Status detail_state(const DetailStateChange& change) = 0;
  virtual Status clock_sync(const ClockSync& sync) = 0;
  // Adds a line to the manifest's "events": a refused connection, a reconnect, a damaged page.
  virtual Status note(const std::string& what) = 0;
  virtual void set_lost_without_stream(uint64_t count) = 0;

  // Makes everything appended so far durable as SessionOptions say, and the manifest true. Called
  // before an ack; cheap when there is nothing to do.
  virtual Status commit() = 0;

  virtual std::vector<StreamPosition> positions() const = 0;
  virtual SessionTotals totals() const = 0;

  // Repairs links where needed, writes footers and headers, looks symbols up, writes the final
  // manifest. `reason` stands in the manifest. After this only totals() and the names may be asked.
  virtual Status seal(SessionState state, const std::string& reason) = 0;
};

}  // namespace collect::storage
