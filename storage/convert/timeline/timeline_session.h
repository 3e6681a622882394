// What a reader finds in another program's trace, as one ATF session: tracks become threads. Events
// are kept and put in order on the disk (record_store.h), names in memory up to the limits below.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/core/timeline/timeline_sink.h"
#include "storage/convert/convert_log.h"
#include "storage/convert/session_builder.h"
#include "storage/convert/timeline/record_store.h"
#include "storage/convert/timeline/track_calls.h"

namespace collect::convert {

inline constexpr size_t kMaxTimelineProcesses = 65'536;
inline constexpr size_t kMaxTimelineTracks = storage::kMaxThreads;
inline constexpr size_t kMaxTimelineFunctions = size_t{1} << 20;
inline constexpr size_t kMaxTimelineNameBytes = size_t{64} << 20;   // of all functions together
inline constexpr size_t kMaxTimelineMarkBytes = size_t{16} << 20;   // of all markers together
inline constexpr size_t kMaxTimelineLabelBytes = size_t{64} << 20;  // of processes and tracks
// Times further from 0 than this, some 146 years, are none.
inline constexpr int64_t kMaxTimelineNs = int64_t{1} << 62;

class TimelineSession final : public TimelineSink {
 public:
  // `directory` is for what is put in order; `file_bytes` are what progress() counts up to.
  TimelineSession(SessionBuilder& session, ConvertLog& log, std::string directory,
                  uint64_t file_bytes)
      : session_(session), log_(log), records_(std::move(directory)), file_bytes_(file_bytes) {}

  uint32_t add_process(uint32_t pid) override;
  uint32_t add_track() override;
  void name_process(uint32_t process, std::string_view name) override;
  void name_track(uint32_t track, std::string_view name) override;
  void place_track(uint32_t track, uint32_t process, uint32_t tid) override;
  uint32_t function(std::string_view name, std::string_view file, uint32_t line) override;
  Status begin(uint32_t track, int64_t ns, uint32_t function) override;
  Status end(uint32_t track, int64_t ns) override;
  Status call(uint32_t track, int64_t ns, uint64_t duration_ns, uint32_t function) override;
  Status marker(int64_t ns, std::string_view text) override;
  void leave_out(std::string_view kind, uint64_t count) override;
  void missing(std::string sentence) override { log_.missing(sentence); }
  void remark(std::string sentence) override { log_.remark(std::move(sentence)); }
  void progress(uint64_t offset) override { log_.progress(offset, file_bytes_); }

  // The session, of all that came. `name`: of its process, where the file has none.
  Status build(std::string_view name);

 private:
  struct Process {
    uint32_t pid = 0;
    std::string name;
    bool has_events = false;
  };
  struct Track {
    uint32_t process = kNone;
    uint32_t tid = 0;
    std::string name;
    bool has_events = false;
  };
  class Steps;

  void label(std::string& name, std::string_view text);
  Status add(uint32_t track, int64_t ns, RecordKind kind, uint32_t function, uint64_t duration_ns);
  bool takes(int64_t ns);
  void count_processes();
  BuiltProcess built_process(std::string_view name) const;
  std::string thread_name(const Track& track) const;
  Status build_tracks(uint64_t shift_ns);
  void say_counts();

  SessionBuilder& session_;
  ConvertLog& log_;
  RecordStore records_;
  const uint64_t file_bytes_;
  std::vector<Process> processes_;
  std::vector<Track> tracks_;
  std::unordered_map<std::string, uint32_t> functions_;  // by name and source; ids from 1
  size_t name_bytes_ = 0, label_bytes_ = 0;
  std::string key_;
  std::set<std::pair<int64_t, std::string>> markers_;
  size_t mark_bytes_ = 0;
  std::unordered_map<std::string_view, uint64_t> left_out_;  // of kinds that live as long
  int64_t first_ns_ = kMaxTimelineNs;
  size_t shown_processes_ = 0;
  TrackCounts counts_;
  uint64_t other_functions_ = 0, other_tracks_ = 0, other_markers_ = 0, other_labels_ = 0,
           bad_times_ = 0;
};

}  // namespace collect::convert
