#include "daemon/ctl/convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "daemon/ctl/captures/wtf_binary.h"
#include "daemon/ctl/convert/convert_input.h"
#include "daemon/ctl/convert/output_file.h"
#include "daemon/ctl/convert/session_builder.h"
#include "daemon/ctl/convert/session_input.h"
#include "daemon/ctl/convert/whole_session.h"
#include "daemon/ctl/export/export.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/leftovers.h"
#include "daemon/ctl/running_names.h"
#include "daemon/ctl/terminal.h"
#include "daemon/ctl/text_out.h"
#include "daemon/ctl/unnamed_file.h"
#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/symbolizer.h"
#include "formats/atf/session_reader.h"
#include "storage/capture_replay.h"
#include "storage/manifest.h"
#include "storage/session_health.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

Result<Leftover> temporary_directory(const std::string& beside) {
  return Leftover::made_by([&]() -> Result<std::string> {
    std::string path = beside + ".session-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
}

// ---- into a session

std::optional<atf::Version> version_of(const ConvertOptions& options) {
  if (!options.atf_version) return std::nullopt;
  return *options.atf_version == 1 ? atf::Version::kV1 : atf::Version::kV2;
}

using Containers = std::vector<std::pair<std::string, Bytes>>;

Result<std::string> rebuild(const Containers& containers, const std::string& root,
                            std::optional<atf::Version> version, ConvertLog& log) {
  storage::PosixFs files(root);
  storage::SessionOptions options;
  options.root = root;
  storage::CaptureReplay replay(files, options, version);
  uint64_t all = 0, before = 0;
  for (const auto& [path, bytes] : containers) all += bytes.size();
  for (const auto& [path, bytes] : containers) {
    COLLECT_TRY(replay.add(
        path, bytes, [&log, before, all](uint64_t done) { log.progress(before + done, all); }));
    before += bytes.size();
  }
  auto report = replay.finish();
  if (!report.ok()) return report.error();
  log.missing(report->missing, report->missing_left_out);
  for (const auto& [what, count] : report->left_out) log.leave_out(what, count);
  log.count("events", report->totals.events);
  log.count("detail_records", report->totals.detail_records);
  log.count("lost_events", report->totals.lost_events);
  return report->directory;
}

bool has_other_version(const Trace& trace, atf::Version version) {
  const atf::SessionReader session(trace.files());
  return std::any_of(session.threads().begin(), session.threads().end(), [&](const auto& thread) {
    return thread.index && thread.index->version() != version;
  });
}

// A session in the other version, by way of a container, which is what both can be told from.
Result<std::string> rewrite_session(const Trace& trace, const std::string& root,
                                    atf::Version version, ConvertLog& log) {
  auto container = UnnamedFile::create(directory_of(root));
  if (!container.ok()) return container.error();
  log.begin_step(0, 2);
  const auto events = write_container(trace, *container, directory_of(root), log);
  if (!events.ok()) return events.error();
  log.begin_step(1, 2);
  const auto bytes = container->bytes();
  if (!bytes.ok()) return bytes.error();
  return rebuild({{trace.path, bytes->bytes()}}, root, version, log);
}

// A container or stream that is whole may hold a session that is not.
Status check_made_session(const std::string& directory, ConvertLog& log) {
  if (!log.is_input_whole()) return {};
  const auto made = open_trace(directory);
  if (!made.ok()) return made.error();
  if (!made->manifest) return {};
  const auto manifest = storage::manifest_from_json(*made->manifest);
  if (!manifest.ok()) return manifest.error();
  const storage::SessionHealth health = storage::health_of(*manifest);
  if (!health.is_complete()) log.missing("the session in it is not complete: " + health.missing);
  return {};
}

Result<std::string> build_session(const ConvertOptions& convert, const ConvertInput& input,
                                  const std::string& root, ConvertLog& log) {
  const std::optional<atf::Version> version = version_of(convert);
  if (input.source == Source::kAtf) {
    return version && has_other_version(input.trace, *version)
               ? rewrite_session(input.trace, root, *version, log)
               : copy_session(input.trace, root, log);
  }
  if (input.source == Source::kRtc) {
    Containers containers;
    for (const auto& [path, file] : input.files) containers.emplace_back(path, file.bytes());
    return rebuild(containers, root, version, log);
  }
  SessionBuilder builder(root, version.value_or(atf::Version::kV2));
  Status built;
  if (input.source == Source::kDial9) {
    built = dial9_to_atf(input.file(), builder, log);
  } else {
    wtf::Findings findings;
    const auto binary = WtfBinary::of(input.file(), findings, directory_of(root));
    if (!binary.ok()) return binary.error();
    for (const auto& finding : findings.list()) {
      if (finding.severity == Severity::kError) log.missing(finding.sentence);
    }
    built = wtf_to_atf(binary->bytes(), builder, log);
  }
  if (!built.ok()) return built.error();
  log.leave_out("times that stepped back within a thread, moved to the event before",
                builder.moved_times());
  log.leave_out("marks past the number of markers in a session", builder.more_markers());
  log.leave_out("marks of the time and the text of another one", builder.repeated_markers());
  log.count("events", builder.events());
  for (const storage::MissingInput& missing : log.missing()) builder.input_missing(missing);
  return builder.finish(log.is_input_whole(),
                        "converted from " + std::string(name_of(input.source)));
}

// Where the session is.
Result<std::string> make_session(const ConvertOptions& convert, const ConvertInput& input,
                                 const std::string& root, ConvertLog& log) {
  auto made = build_session(convert, input, root, log);
  // Of a session the input was checked already.
  if (made.ok() && input.source != Source::kAtf) COLLECT_TRY(check_made_session(*made, log));
  return made;
}

// ---- out of a session

Status write_target(const ConvertOptions& options, const Trace& trace, ConvertLog& log) {
  switch (options.to) {
    case Target::kRtc:
      return atf_to_rtc(trace, options.output, log);
    case Target::kWtf:
      return atf_to_wtf(trace, options.output, log);
    case Target::kDial9:
      return atf_to_dial9(trace, options.output, log);
    default:
      break;
  }
  return Error{Code::kInvalidArgument, "an ATF session is one already"};
}

// The JSON form of what the binary form would be.
Status session_to_wtf_json(const ConvertOptions& options, const Trace& trace, ConvertLog& log) {
  auto temporary = temporary_directory(options.output);
  if (!temporary.ok()) return temporary.error();
  const std::string path = temporary->path() + "/binary.wtf-trace";
  COLLECT_TRY(atf_to_wtf(trace, path, log));
  const auto parts = log.take_written();
  const fs::path whole(options.output);
  std::vector<std::string> outputs = {options.output};
  while (outputs.size() < parts.size()) {
    outputs.push_back((whole.parent_path() / whole.stem()).string() + "." +
                      std::to_string(outputs.size() + 1) + whole.extension().string());
    // Before anything is made.
    if (!options.force && fs::exists(fs::symlink_status(outputs.back()))) {
      return Error{Code::kAlreadyExists, outputs.back() + " is there already; --force replaces it"};
    }
  }
  for (size_t i = 0; i < outputs.size() && i < parts.size(); ++i) {
    ConvertOptions one = options;
    one.output = outputs[i];
    auto binary = FileBytes::open(parts[i].first);
    if (!binary.ok()) return binary.error();
    ConvertLog ignored;
    COLLECT_TRY(wtf_to_wtf(one, binary->bytes(), ignored));
    for (const auto& [where, size] : ignored.written()) log.wrote(where, size);
  }
  return {};
}

// An ATF session: the input itself, or one that is made of it for as long as this lives.
class Session {
 public:
  // `input` outlives it.
  Status open(const ConvertOptions& options, const ConvertInput& input, ConvertLog& log) {
    trace_ = &input.trace;
    if (input.source == Source::kAtf) return {};
    auto directory = temporary_directory(options.output);
    if (!directory.ok()) return directory.error();
    temporary_.emplace(std::move(*directory));
    // What is counted of the session in between is counted again on the way out of it.
    log.begin_step(0, 2);
    ConvertLog first([&log](uint64_t done, uint64_t all) { log.progress(done, all); });
    auto made = make_session(options, input, temporary_->path(), first);
    if (!made.ok()) return made.error();
    log.take(first);
    log.begin_step(1, 2);
    auto opened = open_trace(*made);
    if (!opened.ok()) return opened.error();
    built_ = std::move(*opened);
    trace_ = &built_;
    return {};
  }
  const Trace& trace() const { return *trace_; }

 private:
  std::optional<Leftover> temporary_;
  Trace built_;
  const Trace* trace_ = nullptr;
};

Status run(const ConvertOptions& options, const ConvertInput& input, ConvertLog& log) {
  const bool both_wtf = (input.source == Source::kWtf || input.source == Source::kWtfJson) &&
                        (options.to == Target::kWtf || options.to == Target::kWtfJson);
  if (both_wtf) return wtf_to_wtf(options, input.file(), log);
  if (input.source == Source::kDial9 && options.to == Target::kDial9) {
    return dial9_to_dial9(options, input.file(), log);
  }
  if (input.source == Source::kRtc && options.to == Target::kRtc) {
    std::vector<Bytes> files;
    for (const auto& [path, file] : input.files) files.push_back(file.bytes());
    return rtc_to_rtc(options, files, log);
  }
  if (options.to == Target::kAtf) {
    auto made = make_whole_session(options.output, [&](const std::string& root) {
      return make_session(options, input, root, log);
    });
    if (!made.ok()) return made.error();
    uint64_t bytes = 0;
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(*made, ignored)) {
      if (entry.is_regular_file(ignored)) bytes += entry.file_size(ignored);
    }
    log.wrote(*made, bytes);
    return {};
  }
  Session session;
  COLLECT_TRY(session.open(options, input, log));
  if (options.to == Target::kWtfJson) return session_to_wtf_json(options, session.trace(), log);
  return write_target(options, session.trace(), log);
}

ViewFormat view_of(Target target) {
  static_assert(static_cast<int>(Target::kHtml) - static_cast<int>(Target::kPerfetto) ==
                static_cast<int>(ViewFormat::kPage));
  return static_cast<ViewFormat>(static_cast<int>(target) - static_cast<int>(Target::kPerfetto));
}

Status run_view(const ConvertOptions& options, const std::vector<ConvertInput>& inputs,
                ConvertLog& log) {
  std::vector<Session> sessions(inputs.size());
  std::vector<const Trace*> traces;
  for (size_t i = 0; i < inputs.size(); ++i) {
    COLLECT_TRY(sessions[i].open(options, inputs[i], log));
    traces.push_back(&sessions[i].trace());
  }
  return export_sessions(traces, options.selection, view_of(options.to), options.output, log);
}

std::function<void(uint64_t, uint64_t)> progress_line(std::ostream& err, bool wanted) {
  if (!wanted) return {};
  // On a terminal, ten times a second at most.
  return
      [&err, next = std::chrono::steady_clock::time_point()](uint64_t done, uint64_t all) mutable {
        const auto now = std::chrono::steady_clock::now();
        if (done >= all) {
          restart_line(err);
          err.flush();
        } else if (now >= next) {
          next = now + std::chrono::milliseconds(100);
          restart_line(err);
          err << "converting " << done * 100 / std::max<uint64_t>(all, 1) << " %" << std::flush;
        }
      };
}

// Without names there still is a view.
void look_names_up(Trace& trace, ConvertLog& log) {
  symbolize::SymbolizerOptions symbols;
  symbols.program = symbolize::symbolizer_program();
  const Status named = name_functions(trace, symbols, symbolize::kMaxSessionTime);
  if (!named.ok()) log.remark("functions have no names: " + named.error().message);
}

}  // namespace

std::string directory_of(const std::string& output) {
  const std::string directory = fs::path(output).parent_path().string();
  return directory.empty() ? "." : directory;
}

int convert(const ConvertOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.command, options.json, out, err};
  std::error_code ignored;
  if (options.to != Target::kAtf && fs::exists(options.output, ignored) && !options.force) {
    return answer.refuse_briefly(
        {Code::kAlreadyExists, options.output + ": is there already; --force replaces it"}, 2);
  }
  if (options.to != Target::kAtf && !fs::is_directory(directory_of(options.output), ignored)) {
    return answer.refuse_briefly(
        {Code::kNotFound, directory_of(options.output) + ": there is no such directory"}, 2);
  }
  auto inputs = open_convert_inputs(options.inputs, is_view(options.to));
  if (!inputs.ok()) {
    return answer.refuse(inputs.error(), 2);
  }
  ConvertLog log(progress_line(err, options.progress));
  for (ConvertInput& input : *inputs) {
    const bool is_unnamed = input.source == Source::kAtf && is_recording(input.trace);
    if (options.look_names_up && is_unnamed) look_names_up(input.trace, log);
    if (!input.trace.choice.empty())
      err << "convert: " << printable_sentence(input.trace.choice) << "\n";
    if (input.source == Source::kAtf) check_session_input(input.trace, log);
    for (const auto& [path, bytes] : input.files) {
      if (!bytes.missing().empty()) log.missing(bytes.missing());
    }
  }
  const ConvertInput& input = inputs->front();
  const Status converted =
      is_view(options.to) ? run_view(options, *inputs, log) : run(options, input, log);
  if (options.progress) restart_line(err);
  if (!converted.ok()) {
    print_convert_losses(options.to, log, err);
    // Nothing matched what was asked for.
    const int code = is_view(options.to) && converted.code() == Code::kNotFound ? 1 : 2;
    return answer.refuse({converted.code(), converted.error().message + "; nothing was made"},
                         code);
  }
  TextOut text(out);
  if (options.json) {
    print_convert_json(options, input.source, log, text);
  } else {
    print_convert_text(log, text);
  }
  text.flush();
  print_convert_losses(options.to, log, err);
  return log.is_input_whole() && (!options.strict || log.left_out().empty()) ? 0 : 1;
}

}  // namespace collect::ctl
