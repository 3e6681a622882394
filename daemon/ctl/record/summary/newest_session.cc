#include "daemon/ctl/record/summary/newest_session.h"

#include <algorithm>
#include <string>

#include "daemon/ctl/record/summary/run_summary.h"
#include "daemon/runtime/newest_recording.h"
#include "formats/core/text/printable.h"
#include "storage/read/session_search.h"

namespace collect::ctl {

void note_newest_session(const std::vector<control::v1::Session>& sessions,
                         const ControlTarget& control, std::ostream& err) {
  const control::v1::Session* const largest = largest_session(sessions);
  if (largest == nullptr) return;
  runtime::NewestRecording newest{largest->path(), largest->name(), control.address, ""};
  // Processes that the program started have sessions that begin later, and are no newer.
  for (const control::v1::Session& session : sessions) {
    newest.stamp = std::max(newest.stamp, read::named_session(session.path()).stamp);
  }
  if (const Status noted = runtime::note_newest(newest); !noted.ok()) {
    err << "collectctl: report and open will not find this recording without its path: "
        << printable_sentence(noted.error().message) << "\n";
  }
}

}  // namespace collect::ctl
