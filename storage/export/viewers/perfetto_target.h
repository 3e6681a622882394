// A time line as a Perfetto trace (formats/perfetto/FORMAT.md): who has which track.
#pragma once

#include <set>

#include "formats/perfetto/writer.h"
#include "storage/export/id_map.h"
#include "storage/export/viewers/time_line_target.h"

namespace collect::exports {

class PerfettoTarget final : public TimeLineTarget {
 public:
  // Runs of packets go to `out`, as perfetto::Writer makes them.
  explicit PerfettoTarget(ByteSink& out) : writer_(out) {}

  void begin_process(const ExportedProcess& process, const FunctionNames& names) override;
  void marker(uint64_t ns, std::string_view text) override;
  void ended(uint64_t ns, std::string_view what) override;
  void events_per_second(uint64_t ns, uint64_t count) override;
  void begin_thread(const ExportedThread& thread, uint64_t first_ns) override;
  void begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) override;
  void end_call(uint64_t ns, uint32_t function, const EventNotes* notes) override;
  void lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
            std::string_view reasons) override;
  void stall(const ExportedThread* thread, const storage::Stall& stall, uint64_t first_ns,
             uint64_t last_ns) override;
  void end_thread(uint64_t last_ns) override;
  Status finish(convert::ConvertLog& log) override;
  const Status& status() const override { return writer_.status(); }

 private:
  // The lower bits of a track's id; the number of its thread, and of its process, are above.
  enum class Role : uint8_t {
    kCalls,
    kLost,
    kPageWait,
    kStopped,
    kSuspended,
    kOffProcessor,
    kMarkers,
    kRate,
    kEnds
  };
  uint64_t uuid(const ExportedThread* thread, Role role) const;
  uint64_t plain_track(const ExportedThread* thread, Role role, std::string name, uint64_t ns);

  perfetto::Writer writer_;
  IdMap pids_;
  IdMap tids_;
  const FunctionNames* names_ = nullptr;
  uint64_t processes_ = 0;
  int32_t pid_ = 0;
  const ExportedThread* thread_ = nullptr;
  std::set<uint64_t> tracks_;  // that are described already
};

}  // namespace collect::exports
