// The recording that this user made last: what `report`, `open` and so on take without a path.
#pragma once

#include <optional>
#include <string>

#include "daemon/runtime/runtime_directory.h"

namespace collect::runtime {

struct NewestRecording {
  std::string path;     // of the session's directory, on the collector's machine
  std::string session;  // its name at the collector
  std::string control;  // where the collector was
  std::string stamp;    // "YYYYMMDD_HHMMSS": sessions that begin later are newer

  bool operator==(const NewestRecording&) const = default;
};

Status note_newest(const NewestRecording& newest);
// Nothing where none is known.
std::optional<NewestRecording> newest_recording();

}  // namespace collect::runtime
