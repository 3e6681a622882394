#include "daemon/ctl/convert/convert_input.h"

#include <algorithm>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/figures.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/terminal.h"
#include "formats/wtf/layout.h"

namespace collect::ctl {
namespace {

constexpr size_t kShownKinds = 3;  // of what is left out

using OpenFiles = std::vector<std::pair<std::string, Result<FileBytes>>>;

// Nothing where it is no directory, or has none.
OpenFiles containers_in(const std::string& path) {
  OpenFiles files;
  const auto directory = storage::RootedDirectory::open(path);
  if (!directory.ok()) return files;
  const auto names = directory->list("");
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (!name.starts_with("capture-") || !name.ends_with(".rtc")) continue;
    files.emplace_back(directory->path_of(name), FileBytes::open(*directory, name));
  }
  return files;
}

OpenFiles open_all(const std::vector<std::string>& paths) {
  OpenFiles files;
  for (const std::string& path : paths) files.emplace_back(path, FileBytes::open(path));
  return files;
}

Result<Source> source_of(const std::string& path, Bytes file) {
  const CaptureFormat* format = capture_format_of(file);
  if (format == &kRtcCapture) return Source::kRtc;
  if (format == &kDial9Capture) return Source::kDial9;
  if (format == &kWtfCapture) {
    const wtf::FileKind kind = wtf::file_kind(file);
    return kind == wtf::FileKind::kJson ? Source::kWtfJson : Source::kWtf;
  }
  return not_a_capture(path, file);
}

Result<ConvertInput> input_of(OpenFiles files) {
  ConvertInput input;
  for (auto& [path, bytes] : files) {
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
  return name_of(static_cast<Target>(source));
}
std::string_view name_of(Target target) {
  static constexpr std::string_view kNames[] = {"atf",    "rtc",      "wtf",    "wtf-json",
                                                "dial9",  "perfetto", "chrome", "speedscope",
                                                "folded", "pprof",    "html"};
  return kNames[static_cast<size_t>(target)];
}
static_assert(static_cast<int>(Source::kDial9) == static_cast<int>(Target::kDial9));

Result<ConvertInput> open_convert_input(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return input_of(open_all(paths));
  auto trace = open_trace(paths.front());
  if (trace.ok() && trace->kind != TraceKind::kUnknownFile) {
    const bool is_session = trace->kind == TraceKind::kSession || trace->kind == TraceKind::kThread;
    if (is_session && trace->threads.empty()) {
      // The thread files are gone, or never were: the containers hold the session too.
      auto containers = containers_in(trace->path);
      if (!containers.empty()) return input_of(std::move(containers));
    }
    ConvertInput input;
    input.trace = std::move(*trace);
    return input;
  }
  if (trace.ok()) return input_of(open_all(paths));
  auto containers = containers_in(paths.front());
  if (containers.empty()) return trace.error();
  return input_of(std::move(containers));
}

Result<std::vector<ConvertInput>> open_convert_inputs(const std::vector<std::string>& paths,
                                                      bool takes_several) {
  std::vector<ConvertInput> inputs;
  if (!takes_several || paths.size() == 1) {
    auto input = open_convert_input(paths);
    if (!input.ok()) return input.error();
    inputs.push_back(std::move(*input));
    return inputs;
  }
  for (const std::string& path : paths) {
    auto input = open_convert_input({path});
    if (!input.ok()) return input.error();
    inputs.push_back(std::move(*input));
  }
  const bool is_one = std::all_of(inputs.begin(), inputs.end(), [](const ConvertInput& input) {
    return input.source == Source::kRtc;
  });
  if (is_one) return open_convert_inputs(paths, false);
  return inputs;
}

void print_convert_json(const ConvertOptions& options, Source from, const ConvertLog& log,
                        TextOut& out) {
  Json document = json_document();
  document["from"] = name_of(from);
  document["to"] = name_of(options.to);
  document["written"] = Json::array();
  for (const auto& [path, bytes] : log.written()) {
    document["written"].push_back({{"path", path}, {"bytes", bytes}});
  }
  document["counts"] = Json::object();
  for (const auto& [what, count] : log.counts()) document["counts"][what] = count;
  document["missing"] = Json::array();
  for (const storage::MissingInput& missing : log.missing()) {
    Json one{{"what", missing.what}};
    if (missing.count != 0) one["count"] = missing.count;
    document["missing"].push_back(std::move(one));
  }
  document["missing_left_out"] = log.missing_left_out();
  document["left_out"] = Json::object();
  for (const auto& [what, count] : log.left_out()) document["left_out"][what] = count;
  document["remarks"] = log.remarks();
  out.put(json_line(document));
}

void print_convert_text(const ConvertLog& log, TextOut& out) {
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
}

void print_convert_losses(Target to, const ConvertLog& log, std::ostream& err) {
  for (const storage::MissingInput& missing : log.missing()) {
    err << "convert: missing from the input: ";
    if (missing.count != 0) err << with_thousands(missing.count) << " ";
    err << printable_sentence(missing.what) << "\n";
  }
  if (log.missing_left_out() != 0) {
    err << "convert: missing from the input: " << log.missing_left_out() << " things more\n";
  }
  for (const std::string& sentence : log.remarks()) {
    err << "convert: " << printable_sentence(sentence) << "\n";
  }
  if (log.remarks_left_out() != 0) {
    err << "convert: " << log.remarks_left_out() << " more remarks\n";
  }
  if (log.left_out().empty()) return;
  // One line, however much it is: the kinds with the most.
  std::vector<std::pair<uint64_t, std::string_view>> kinds;
  for (const auto& [what, count] : log.left_out()) kinds.emplace_back(count, what);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  err << "convert: left out, " << name_of(to) << " has no place for it: ";
  for (size_t i = 0; i < std::min(kinds.size(), kShownKinds); ++i) {
    err << (i == 0 ? "" : "; ") << with_thousands(kinds[i].first) << " "
        << printable_sentence(kinds[i].second);
  }
  if (kinds.size() > kShownKinds) {
    err << "; and " << kinds.size() - kShownKinds << " kinds more (--json lists them)";
  }
  err << "\n";
}

}  // namespace collect::ctl
