// Writes the events of dial9_session.h, one call each. It knows their types and nothing of their
// order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/atf/headers.h"
#include "formats/dial9/writer.h"
#include "storage/convert/convert_log.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {

// Errors are the sink's. What dial9 cannot hold is counted in the log.
class Dial9SessionWriter {
 public:
  Dial9SessionWriter(ByteSink& sink, ConvertLog& log);

  // Before anything else.
  Status define_all();
  // Who and when, and what the manifest says of the whole session.
  Status process(const storage::Manifest& manifest);
  Status module(const storage::ModuleInfo& module);
  // `end_ns`, `file`: 0, empty where it is not known.
  Status thread(uint64_t ns, uint32_t n, uint32_t thread_id, std::string_view name,
                uint64_t end_ns);
  Status function(uint64_t ns, uint64_t id, std::string_view name, bool is_symbol,
                  std::string_view file, uint32_t line);
  Status event(uint32_t n, const atf::IndexEvent& event);
  Status detail(uint32_t n, const atf::DetailRecord& record);
  Status gap(uint64_t ns, const storage::Gap& gap);
  Status marker(const storage::Marker& marker);
  // Nothing but this is written after the last event.
  Status flush() { return out_.flush(); }

 private:
  Status define(dial9::EventType& type, std::string_view name, std::vector<dial9::Field> fields);
  Status notes_and_windows(const storage::Manifest& manifest);
  Status end();

  dial9::Encoder out_;
  ConvertLog& log_;
  uint16_t next_id_;
  dial9::EventType metadata_, clock_sync_, module_, thread_, function_, detail_, gap_, marker_,
      window_, clock_, note_;
  dial9::EventType events_[4];  // by EventKind, which begins at 1
};

}  // namespace collect::convert
