// Traces of other programs into an ATF session, by the readers of their formats.
#include <utility>

#include "formats/chrome/reader.h"
#include "formats/folded/reader.h"
#include "formats/perfetto/reader.h"
#include "formats/speedscope/reader.h"
#include "storage/convert/conversions.h"
#include "storage/convert/timeline/timeline_session.h"

namespace collect::convert {
namespace {

using read::CaptureKind;

Status read_into(CaptureKind kind, Bytes file, TimelineSink& sink) {
  switch (kind) {
    case CaptureKind::kChrome:
      return chrome::read_events(file, sink);
    case CaptureKind::kPerfetto:
      return perfetto::read_packets(file, sink);
    case CaptureKind::kSpeedscope:
      return speedscope::read_profiles(file, sink);
    case CaptureKind::kFolded:
      return folded::read_stacks(file, sink);
    default:
      break;
  }
  return Error{Code::kUnsupported, "there is no reader of " + std::string(capture_kind_name(kind))};
}

}  // namespace

Status timeline_to_atf(CaptureKind kind, const std::string& path, Bytes file,
                       const std::string& directory, SessionBuilder& session, ConvertLog& log) {
  TimelineSession timeline(session, log, directory, file.size());
  const Status found = read_into(kind, file, timeline);
  if (!found.ok()) return Error{found.code(), path + ": " + found.error().message};
  return timeline.build(capture_kind_name(kind));
}

}  // namespace collect::convert
