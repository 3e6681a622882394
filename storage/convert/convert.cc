#include "storage/convert/convert.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "formats/atf/session_reader.h"
#include "storage/convert/conversions.h"
#include "storage/convert/session_builder.h"
#include "storage/convert/whole_session.h"
#include "storage/convert/wtf/wtf_binary.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/session_health.h"
#include "storage/read/unnamed_file.h"
#include "storage/rebuild/capture_replay.h"

namespace collect::convert {
namespace {

namespace fs = std::filesystem;
using read::CaptureKind;

Result<storage::Leftover> temporary_directory(const std::string& beside) {
  return storage::Leftover::made_by([&]() -> Result<std::string> {
    std::string path = beside + ".session-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
}

// ---- into a session

std::optional<atf::Version> version_of(const Options& options) {
  if (!options.atf_version) return std::nullopt;
  return *options.atf_version == 1 ? atf::Version::kV1 : atf::Version::kV2;
}

using Containers = std::vector<std::pair<std::string, Bytes>>;

Result<std::string> rebuild(const Containers& containers, const std::string& root,
                            std::optional<atf::Version> version, ConvertLog& log) {
  auto files = storage::PosixFs::hold(root);
  if (!files.ok()) return files.error();
  storage::SessionOptions options;
  options.root = files->root();
  storage::CaptureReplay replay(*files, options, version);
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

bool has_other_version(const read::Trace& trace, atf::Version version) {
  const atf::SessionReader session(trace.files());
  return std::any_of(session.threads().begin(), session.threads().end(), [&](const auto& thread) {
    return thread.index && thread.index->version() != version;
  });
}

// A session in the other version, by way of a container, which is what both can be distinguished
// from.
Result<std::string> rewrite_session(const read::Trace& trace, const std::string& root,
                                    atf::Version version, ConvertLog& log) {
  auto container = read::UnnamedFile::create(directory_of(root));
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
  const auto made = read::open_trace(directory);
  if (!made.ok()) return made.error();
  if (!made->manifest) return {};
  const auto manifest = storage::manifest_from_json(*made->manifest);
  if (!manifest.ok()) return manifest.error();
  const storage::SessionHealth health = storage::health_of(*manifest);
  if (!health.is_complete()) log.missing("the session in it is not complete: " + health.missing);
  return {};
}

Result<std::string> build_session(const Options& options, const Input& input,
                                  const std::string& root, ConvertLog& log) {
  const std::optional<atf::Version> version = version_of(options);
  if (input.kind == CaptureKind::kAtf) {
    return version && has_other_version(input.trace, *version)
               ? rewrite_session(input.trace, root, *version, log)
               : copy_session(input.trace, root, log);
  }
  if (input.kind == CaptureKind::kRtc) {
    Containers containers;
    for (const auto& [path, file] : input.files) containers.emplace_back(path, file.bytes());
    return rebuild(containers, root, version, log);
  }
  auto files = storage::PosixFs::hold(root);
  if (!files.ok()) return files.error();
  SessionBuilder builder(std::move(*files), version.value_or(atf::Version::kV2));
  Status built;
  if (input.kind == CaptureKind::kDial9) {
    built = dial9_to_atf(input.file(), builder, log);
  } else if (read::is_timeline(input.kind)) {
    built = timeline_to_atf(input.kind, input.files.front().first, input.file(), directory_of(root),
                            builder, log);
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
                        "converted from " + std::string(capture_kind_name(input.kind)));
}

// Where the session is.
Result<std::string> make_session(const Options& options, const Input& input,
                                 const std::string& root, ConvertLog& log) {
  auto made = build_session(options, input, root, log);
  // If the input is a session, it was checked already.
  if (made.ok() && input.kind != CaptureKind::kAtf) COLLECT_TRY(check_made_session(*made, log));
  return made;
}

// ---- out of a session

Status write_target(const Options& options, const read::Trace& trace, ConvertLog& log) {
  switch (options.to) {
    case CaptureKind::kRtc:
      return atf_to_rtc(trace, options.output, log);
    case CaptureKind::kWtf:
      return atf_to_wtf(trace, options.output, log);
    case CaptureKind::kDial9:
      return atf_to_dial9(trace, options.output, log);
    default:
      break;
  }
  return Error{Code::kInvalidArgument, "an ATF session is one already"};
}

// The JSON form of what the binary form would be.
Status session_to_wtf_json(const Options& options, const read::Trace& trace, ConvertLog& log) {
  auto temporary = temporary_directory(options.output);
  if (!temporary.ok()) return temporary.error();
  const std::string path = temporary->path() + "/binary.wtf-trace";
  COLLECT_TRY(atf_to_wtf(trace, path, log));
  const auto parts = log.take_written();
  const fs::path whole(options.output);
  std::vector<std::string> outputs = {options.output};
  while (outputs.size() < parts.size()) {
    outputs.push_back(fmt::format("{}.{}{}", (whole.parent_path() / whole.stem()).string(),
                                  outputs.size() + 1, whole.extension().string()));
    // Before anything is made.
    if (!options.force && fs::exists(fs::symlink_status(outputs.back()))) {
      return Error{Code::kAlreadyExists, outputs.back() + " is there already; --force replaces it"};
    }
  }
  for (size_t i = 0; i < outputs.size() && i < parts.size(); ++i) {
    Options one = options;
    one.output = outputs[i];
    auto binary = read::FileBytes::open(parts[i].first);
    if (!binary.ok()) return binary.error();
    ConvertLog ignored;
    COLLECT_TRY(wtf_to_wtf(one, binary->bytes(), ignored));
    for (const auto& [where, size] : ignored.written()) log.wrote(where, size);
  }
  return {};
}

}  // namespace

Status AtfSession::open(const Options& options, const Input& input, ConvertLog& log) {
  trace_ = &input.trace;
  if (input.kind == CaptureKind::kAtf) return {};
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
  auto opened = read::open_trace(*made);
  if (!opened.ok()) return opened.error();
  built_ = std::move(*opened);
  trace_ = &built_;
  return {};
}
Status convert(const Options& options, const Input& input, ConvertLog& log) {
  const bool both_wtf = (input.kind == CaptureKind::kWtf || input.kind == CaptureKind::kWtfJson) &&
                        (options.to == CaptureKind::kWtf || options.to == CaptureKind::kWtfJson);
  if (both_wtf) return wtf_to_wtf(options, input.file(), log);
  if (input.kind == CaptureKind::kDial9 && options.to == CaptureKind::kDial9) {
    return dial9_to_dial9(options, input.file(), log);
  }
  if (input.kind == CaptureKind::kRtc && options.to == CaptureKind::kRtc) {
    std::vector<Bytes> files;
    for (const auto& [path, file] : input.files) files.push_back(file.bytes());
    return rtc_to_rtc(options, files, log);
  }
  if (options.to == CaptureKind::kAtf) {
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
  AtfSession session;
  COLLECT_TRY(session.open(options, input, log));
  if (options.to == CaptureKind::kWtfJson)
    return session_to_wtf_json(options, session.trace(), log);
  return write_target(options, session.trace(), log);
}

std::string directory_of(const std::string& output) {
  const std::string directory = fs::path(output).parent_path().string();
  return directory.empty() ? "." : directory;
}

}  // namespace collect::convert
