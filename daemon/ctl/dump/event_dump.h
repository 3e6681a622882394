// The printing half of `collectctl dump`: the events of one session, or of several one after
// another or on one time line. dump.cc opens and complains; this prints.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/dump/event_text.h"
#include "formats/atf/session_reader.h"
#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"
#include "storage/select/function_filter.h"
#include "storage/select/time_window.h"

namespace collect::ctl {

// One session to print, and what keeps its bytes.
struct DumpedSession {
  DumpedSession(read::Trace opened, read::SessionManifest said,
                const std::vector<uint32_t>& only_threads)
      : trace(std::move(opened)),
        manifest(std::move(said)),
        names(manifest),
        reader(trace.files(only_threads)) {}

  const read::Trace trace;
  const read::SessionManifest manifest;
  const read::NameTable names;
  const atf::SessionReader reader;
  std::optional<select::FunctionFilter> filter;
  // On the common time line; unset: times are the device's.
  std::optional<select::DeviceClock> clock;
  calls::Window window;    // on that time line, where there is one
  std::string where_from;  // a line for people: process, device, how its clock is known
};

// Prints what the options select. With `merged`, in time order: of one session by its own clock, of
// several, which all have a clock then, by the time line. False: it ended before the last event.
// `progress` is informed how many of all events are looked at, if they are many, and all of them at
// the end.
bool dump_events(const DumpOptions& options,
                 const std::vector<std::unique_ptr<DumpedSession>>& sessions, std::ostream& out,
                 const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace collect::ctl
