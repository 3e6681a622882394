// A time line as Chrome's trace events (formats/chrome/FORMAT.md).
#pragma once

#include "formats/chrome/writer.h"
#include "storage/export/id_map.h"
#include "storage/export/viewers/time_line_target.h"

namespace collect::exports {

class ChromeTarget final : public TimeLineTarget {
 public:
  // Times of the file count from `origin_ns`.
  ChromeTarget(ByteSink& out, uint64_t origin_ns)
      : writer_(out, origin_ns), origin_ns_(origin_ns) {}

  void begin_process(const ExportedProcess& process, const FunctionNames& names) override;
  void marker(uint64_t ns, std::string_view text) override;
  void ended(uint64_t ns, std::string_view what) override { marker(ns, what); }
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
  chrome::Writer writer_;
  const uint64_t origin_ns_;
  IdMap pids_;
  IdMap tids_;
  const FunctionNames* names_ = nullptr;
  int32_t pid_ = 0;
  int32_t tid_ = 0;
  uint64_t intervals_ = 0;
};

}  // namespace collect::exports
