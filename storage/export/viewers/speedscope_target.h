// A time line as a speedscope file (formats/speedscope/FORMAT.md): a profile for each thread.
#pragma once

#include "formats/speedscope/writer.h"
#include "storage/export/viewers/time_line_target.h"

namespace collect::exports {

class SpeedscopeTarget final : public TimeLineTarget {
 public:
  // Times of the file count from `origin_ns`.
  SpeedscopeTarget(ByteSink& out, uint64_t origin_ns) : writer_(out, origin_ns, "collectctl") {}

  void begin_process(const ExportedProcess& process, const FunctionNames& names) override;
  void marker(uint64_t /*ns*/, std::string_view /*text*/) override {}
  void events_per_second(uint64_t /*ns*/, uint64_t /*count*/) override {}
  void begin_thread(const ExportedThread& thread, uint64_t first_ns) override;
  void begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) override;
  void end_call(uint64_t ns, uint32_t function, const EventNotes* notes) override;
  void lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
            std::string_view reasons) override;
  void stall(const ExportedThread*, const storage::Stall&, uint64_t, uint64_t) override {}
  void stall_within(const storage::Stall& stall, uint64_t first_ns, uint64_t last_ns) override;
  void end_thread(uint64_t last_ns) override;
  Status finish(convert::ConvertLog& log) override;
  const Status& status() const override { return writer_.status(); }

 private:
  // speedscope builds and draws call trees by recursion.
  static constexpr size_t kMaxDepth = 512;

  speedscope::Writer writer_;
  const FunctionNames* names_ = nullptr;
  std::string process_;
  std::string title_;
  uint64_t details_ = 0;
  uint64_t joined_ = 0;
  uint64_t folded_ = 0;
  uint64_t too_deep_ = 0;  // open calls that are not in the file
};

}  // namespace collect::exports
