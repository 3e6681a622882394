#include "storage/rebuild/capture_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/container/capture_layout.h"
#include "storage/container/container_pages.h"

namespace collect::storage {
namespace {

// After how many bytes of a container progress is reported.
constexpr uint64_t kProgressStep = 8u << 20;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The first that can be read, or none: a whole container begins with it, and one without its head
// may still end with it.
Result<std::optional<Manifest>> first_manifest(const std::string& name, Bytes container) {
  rtc::ReaderOptions options;
  options.verify_crc = false;  // replay() checks
  auto reader = rtc::Reader::open(container, options);
  if (!reader.ok())
    return Error{reader.code(), fmt::format("{}: {}", name, reader.error().message)};
  rtc::Object object;
  while (reader->next(object)) {
    if (object.stream->name != kManifestStream) continue;
    auto manifest = manifest_from_json(text_of(object.payload()));
    if (manifest.ok()) return std::optional(std::move(*manifest));
  }
  return std::optional<Manifest>();
}

}  // namespace

CaptureReplay::CaptureReplay(Fs& fs, SessionOptions options, std::optional<atf::Version> version)
    : session_(fs, std::move(options), "the containers", version) {}

void CaptureReplay::problem(uint64_t offset, const std::string& sentence) {
  session_.missing({fmt::format("{}: at {}: {}", name_, offset, sentence)});
}

Status CaptureReplay::add(const std::string& name, Bytes container, const Progress& progress) {
  if (session_.begun()) return replay(name, container, progress);
  // Nothing can be stored before it is known which session it is of, and which thread a page.
  auto manifest = first_manifest(name, container);
  if (!manifest.ok()) return manifest.error();
  waiting_.push_back({name, container, progress});
  if (!*manifest) return {};
  COLLECT_TRY(session_.begin(**manifest));
  COLLECT_TRY(session_.add_metadata(**manifest));
  for (const Waiting& one : std::exchange(waiting_, {})) {
    COLLECT_TRY(replay(one.name, one.container, one.progress));
  }
  return {};
}

Status CaptureReplay::replay(const std::string& name, Bytes container, const Progress& progress) {
  name_ = name;
  auto opened = rtc::Reader::open(container);
  if (!opened.ok())
    return Error{opened.code(), fmt::format("{}: {}", name, opened.error().message)};
  rtc::Reader& reader = *opened;
  rtc::Object object;
  uint64_t reported = 0;
  uint64_t errors = 0;
  while (reader.next(object)) {
    if (const uint64_t now = reader.findings().errors(); now != errors) {
      errors = now;
      session_.doubt();
    }
    COLLECT_TRY(take(object));
    if (progress && object.offset - reported >= kProgressStep) {
      reported = object.offset;
      progress(reported);
    }
  }
  for (const rtc::Finding& finding : reader.findings().list()) {
    if (finding.severity == Severity::kError) problem(finding.offset, finding.sentence);
  }
  if (reader.head_bytes() != 0) {
    problem(0, fmt::format("{} bytes in front of the first Marker", reader.head_bytes()));
  }
  if (progress) progress(container.size());
  return session_.commit();
}

Status CaptureReplay::take(const rtc::Object& object) {
  const std::string& stream = object.stream->name;
  if (stream == kManifestStream) return take_manifest(object.payload(), object.offset);
  if (stream == kChangesStream) return take_change(object.payload(), object.offset);
  if (stream == kIndexPagesStream || stream == kDetailPagesStream) {
    return take_page(object.payload(), object.offset);
  }
  for (const PassthroughKind kind : kPassthroughKinds) {
    if (stream == passthrough_kind_name(kind)) {
      return settle(session_.passthrough(kind, object.payload()), object.offset);
    }
  }
  return {};  // clock, gaps, log, markers: said in the manifest and the pages too
}

Status CaptureReplay::take_manifest(Bytes json, uint64_t offset) {
  auto manifest = manifest_from_json(text_of(json));
  if (!manifest.ok()) {
    problem(offset, manifest.error().message);
    return {};
  }
  const Status taken = session_.manifest(std::move(*manifest));
  if (taken.ok() || taken.code() != Code::kInvalidArgument) return taken;
  return Error{taken.code(), fmt::format("{}: {}", name_, taken.error().message)};
}

Status CaptureReplay::take_change(Bytes json, uint64_t offset) {
  auto delta = manifest_from_json(text_of(json));
  if (!delta.ok()) {
    problem(offset, delta.error().message);
    return {};
  }
  return session_.change(*delta);
}

Status CaptureReplay::take_page(Bytes object, uint64_t offset) {
  const auto page = captured_page(object, unpacked_);
  if (page.ok()) return settle(session_.page(*page), offset);
  session_.refuse_page();
  problem(offset, page.error().message);
  return {};
}

Status CaptureReplay::settle(const Result<Refusal>& taken, uint64_t offset) {
  if (!taken.ok()) return taken.error();
  if (*taken) problem(offset, **taken);
  return {};
}

Result<ReplayReport> CaptureReplay::finish() {
  auto report = session_.finish();
  if (report.ok() || report.code() != Code::kNotFound) return report;
  return Error{
      Code::kNotFound,
      fmt::format("{}{}, so that it is not known which session it is of", report.error().message,
                  waiting_.empty() ? "" : " in " + waiting_.front().name)};
}

}  // namespace collect::storage
