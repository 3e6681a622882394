#include "daemon/ctl/convert/pack.h"

#include <fmt/core.h>

#include <ostream>
#include <utility>

#include "daemon/ctl/convert/own_session.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"
#include "storage/packed/pack_session.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

struct PackedSession {
  std::string path;
  storage::PackReport report;
};

Result<PackedSession> pack_one(const std::string& path, const PackOptions& options,
                               std::ostream& err) {
  auto trace = read::open_trace(path);
  if (!trace.ok()) return trace.error();
  if (trace->kind != read::TraceKind::kSession) {
    return Error{Code::kInvalidArgument, path + ": not a session; name the session's directory"};
  }
  if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
  PackedSession packed{trace->path, {}};
  *trace = read::Trace();  // unmapped
  const char* const doing = options.unpack ? "unpack" : "pack";
  const auto own = own_session(packed.path, doing);
  if (!own.ok()) return own.error();
  const auto line = percent_line(err, options.progress, std::string(doing) + "ing");
  const auto progress = [&line](uint64_t done, uint64_t all) {
    line(done, all);
    return Status();
  };
  auto report = options.unpack ? storage::unpack_session(*own->files, own->session_path, progress)
                               : storage::pack_session(*own->files, own->session_path, progress);
  if (!report.ok()) return report.error();
  packed.report = *report;
  return packed;
}

// "packed: 5 files of 1.8 GB, now 103 MB, 1.8 bytes an event"
std::string sentence(const PackedSession& packed, bool unpack) {
  const storage::PackReport& report = packed.report;
  if (report.files == 0) return unpack ? "was unpacked already" : "was packed already";
  const std::string files =
      fmt::format("{} of {}", counted(report.files, "file"), short_bytes(report.file_bytes));
  if (unpack) return "unpacked: " + files;
  std::string said = fmt::format("packed: {}, now {}", files, short_bytes(report.packed_bytes));
  if (report.events != 0) {
    const uint64_t tenths = (report.packed_bytes * 10 + report.events / 2) / report.events;
    said += fmt::format(", {}.{} bytes an event", tenths / 10, tenths % 10);
  }
  return said;
}

Json json_of(const PackedSession& packed) {
  const storage::PackReport& report = packed.report;
  Json session;
  session["path"] = packed.path;
  session["files"] = report.files;
  session["file_bytes"] = report.file_bytes;
  session["packed_bytes"] = report.packed_bytes;
  session["events"] = report.events;
  return session;
}

}  // namespace

int pack(const PackOptions& options, std::ostream& out, std::ostream& err) {
  TextOut text(out);
  Json document = json_document();
  document["sessions"] = Json::array();
  for (const std::string& path : options.paths) {
    const Result<PackedSession> packed = pack_one(path, options, err);
    if (!packed.ok()) {
      text.flush();
      return Answer{options.json, out, err}.refuse(packed.error(), 2);
    }
    if (options.json) {
      document["sessions"].push_back(json_of(*packed));
      continue;
    }
    text.printable(packed->path);
    text.put(": ");
    text.sentence(sentence(*packed, options.unpack));
    text.put('\n');
    text.flush();
  }
  if (options.json) text.put(json_line(document));
  return 0;
}

}  // namespace collect::ctl
