// Captures that are one file of a format other than ATF, and what `inspect`, `verify`, `dump` and
// `recover` need to know of each. The bytes of a file determine its format, not its name.
//
// Adding a format: write its CaptureFormat in a file beside this one, and choose it in
// capture_format_of().
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ctl/captures/bytes_done.h"
#include "daemon/ctl/captures/capture_options.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/findings.h"
#include "formats/core/result.h"
#include "storage/read/session_files.h"
#include "storage/select/time_window.h"

namespace collect::ctl {

enum class CaptureGrade : uint8_t {
  kOk,
  kRecovered,  // whole as far as it goes, but it was cut off or never finished
  kDamaged,    // readable, but it contradicts itself
  kRejected,   // nothing in it can be read
};
std::string_view severity_name(Severity severity);  // "note", "warning", "error"
std::string_view to_text(CaptureGrade grade);       // "ok", "recovered", "damaged", "rejected"

struct CaptureFinding {
  Severity severity = Severity::kError;
  std::string_view check;  // the rule's name, as "marker-grid"; lives as long as the program
  uint64_t offset = 0;
  std::string sentence;
};

// What one pass over a whole file found.
struct CaptureReport {
  CaptureGrade grade = CaptureGrade::kOk;
  std::string counts;  // for one line: "6 units, 6 streams, 1281 objects"
  // For people, in order: label and text. An empty label continues the entry before it.
  std::vector<std::pair<std::string, std::string>> facts;
  Json json;                             // for programs: an object, or null
  std::vector<CaptureFinding> findings;  // as many as the format's reader lists
  uint64_t errors = 0, warnings = 0, notes = 0;
  std::optional<uint64_t> first_ns;  // the earliest time in it, as dump prints times
};

struct CaptureFormat {
  std::string_view name;   // "rtc"
  std::string_view title;  // "RTC container"
  CaptureReport (*check)(Bytes file, const BytesDone& done);
  // Prints what is in it in that time, as text or as JSON lines. Options that the format cannot
  // follow are refused with kInvalidArgument. kDamaged: it broke off; what could be read was
  // printed.
  Status (*dump)(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                 const BytesDone& done);
  // Writes a whole file of the same format with all that can be read; the sentences say what is
  // missing from it. kDamaged: nothing can be read.
  Result<std::vector<std::string>> (*recover)(Bytes file, ByteSink& out, const BytesDone& done);
};

const CaptureFormat* capture_format_of(Bytes file);  // null: none of these

extern const CaptureFormat kRtcCapture;
extern const CaptureFormat kWtfCapture;
extern const CaptureFormat kDial9Capture;

// The three commands on such a file; exit codes as in inspect.h, verify.h and dump.h.
int inspect_capture(const CaptureFormat& format, const InspectOptions& options,
                    const read::Trace& trace, std::ostream& out, std::ostream& err);
int verify_capture(const CaptureFormat& format, const VerifyOptions& options,
                   const read::Trace& trace, std::ostream& out, std::ostream& err);
int dump_capture(const CaptureFormat& format, const DumpOptions& options, const std::string& path,
                 Bytes file, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
