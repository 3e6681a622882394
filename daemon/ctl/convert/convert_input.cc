#include "daemon/ctl/convert/convert_input.h"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/figures.h"
#include "formats/wtf/layout.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> containers_in(const fs::path& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("capture-") && name.ends_with(".rtc"))
      paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<Source> source_of(const std::string& path, Bytes file) {
  const CaptureFormat* format = capture_format_of(file);
  if (format == &kRtcCapture) return Source::kRtc;
  if (format == &kDial9Capture) return Source::kDial9;
  if (format == &kWtfCapture) {
    const wtf::FileKind kind = wtf::file_kind(file);
    return kind == wtf::FileKind::kJson ? Source::kWtfJson : Source::kWtf;
  }
  return Error{Code::kUnsupported, path + ": no format that is known here"};
}

Result<ConvertInput> open_files(const std::vector<std::string>& paths) {
  ConvertInput input;
  for (const std::string& path : paths) {
    auto bytes = FileBytes::open(path);
    if (!bytes.ok()) return bytes.error();
    const auto source = source_of(path, bytes->bytes());
    if (!source.ok()) return source.error();
    if (!input.files.empty() && (*source != Source::kRtc || input.source != Source::kRtc)) {
      return Error{Code::kInvalidArgument,
                   path +
                       ": several inputs are converted only when all are RTC containers of one "
                       "session"};
    }
    input.source = *source;
    input.files.emplace_back(path, std::move(*bytes));
  }
  return input;
}

}  // namespace

std::string_view name_of(Source source) {
  static constexpr std::string_view kNames[] = {"atf", "rtc", "wtf", "wtf-json", "dial9"};
  return kNames[static_cast<size_t>(source)];
}
std::string_view name_of(Target target) {
  return name_of(static_cast<Source>(target));
}
static_assert(static_cast<int>(Source::kDial9) == static_cast<int>(Target::kDial9));

Result<ConvertInput> open_convert_input(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return open_files(paths);
  std::error_code ignored;
  auto trace = open_trace(paths.front());
  if (trace.ok() && trace->kind != TraceKind::kUnknownFile) {
    const bool is_session = trace->kind == TraceKind::kSession || trace->kind == TraceKind::kThread;
    if (is_session && trace->threads.empty()) {
      // The thread files are gone, or never were: the containers hold the session too.
      const auto containers = containers_in(trace->path);
      if (!containers.empty()) return open_files(containers);
    }
    ConvertInput input;
    input.trace = std::move(*trace);
    return input;
  }
  if (fs::is_directory(paths.front(), ignored)) {
    const auto containers = containers_in(paths.front());
    if (!containers.empty()) return open_files(containers);
    return trace.error();
  }
  if (!trace.ok()) return trace.error();
  return open_files(paths);
}

void print_convert_json(const ConvertOptions& options, Source from, const ConvertLog& log,
                        TextOut& out) {
  out.put("{\"from\":");
  out.json_string(name_of(from));
  out.put(",\"to\":");
  out.json_string(name_of(options.to));
  out.put(",\"written\":[");
  const char* comma = "";
  for (const auto& [path, bytes] : log.written()) {
    out.put(comma);
    comma = ",";
    out.put("{\"path\":");
    out.json_string(path);
    out.put(",\"bytes\":");
    out.dec(bytes);
    out.put('}');
  }
  out.put("],\"counts\":{");
  comma = "";
  for (const auto& [what, count] : log.counts()) {
    out.put(comma);
    comma = ",";
    out.json_string(what);
    out.put(':');
    out.dec(count);
  }
  out.put("},\"left_out\":{");
  comma = "";
  for (const auto& [what, count] : log.left_out()) {
    out.put(comma);
    comma = ",";
    out.json_string(what);
    out.put(':');
    out.dec(count);
  }
  out.put("},\"remarks\":[");
  comma = "";
  for (const std::string& sentence : log.said()) {
    out.put(comma);
    comma = ",";
    out.json_string(sentence);
  }
  out.put("]}\n");
}

void print_convert_text(const ConvertLog& log, TextOut& out, std::ostream& err) {
  for (const auto& [path, bytes] : log.written()) {
    out.printable(path);
    out.put(": ");
    out.put(short_bytes(bytes));
    out.put('\n');
  }
  for (const auto& [what, count] : log.counts()) {
    out.put("  ");
    out.put(with_thousands(count));
    out.put(' ');
    out.put(what == "detail_records" ? "detail records"
            : what == "lost_events"  ? "lost events"
                                     : what);
    out.put('\n');
  }
  out.flush();
  for (const std::string& sentence : log.said()) {
    err << "convert: " << printable(sentence) << "\n";
  }
  if (log.unsaid() != 0) err << "convert: " << log.unsaid() << " more remarks\n";
  for (const auto& [what, count] : log.left_out()) {
    err << "convert: left out: " << with_thousands(count) << " " << printable(what) << "\n";
  }
}

}  // namespace collect::ctl
