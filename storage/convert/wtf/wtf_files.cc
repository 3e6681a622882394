#include "storage/convert/wtf/wtf_files.h"

#include <fmt/core.h>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/atf/reader.h"
#include "storage/convert/wtf/wtf_events.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kNsPerMs = 1'000'000;

// A text of the manifest as the header's JSON holds it.
std::string header_text(std::string text) {
  storage::bound_text(text);
  return wtf::safe_text(text);
}

}  // namespace

WtfFiles::WtfFiles(const storage::Manifest& session, std::string output)
    : identity_(session.identity),
      health_(storage::health_of(session)),
      output_(std::move(output)) {
  for (const storage::MissingInput& one : session.input_missing) {
    missing_.push_back(header_text(storage::missing_text(one)));
  }
  std::error_code ignored;
  replaces_ = fs::exists(output_, ignored);
}

Status WtfFiles::begin(uint64_t first_ns) {
  const size_t number = written_.size() + 1;
  if (number > kMaxWtfFiles) {
    return Error{Code::kLimit, fmt::format("{}: it would take more than {} files of 71 minutes",
                                           output_, kMaxWtfFiles)};
  }
  auto file = storage::OutputFile::create(path_of(number), number == 1 || replaces_);
  if (!file.ok()) return file.error();
  file_.emplace(std::move(*file));
  wtf::WriterOptions options;
  const wtf::FileHeader header = header_at(first_ns, options.epoch_ns);
  epoch_ns_ = options.epoch_ns;
  writer_ = std::make_unique<wtf::Writer>(*file_, options);
  return writer_->begin(header);
}

Status WtfFiles::end() {
  COLLECT_TRY(writer_->finish());
  auto part = storage::Leftover::made_by([&]() -> Result<std::string> {
    COLLECT_TRY(file_->commit());
    return file_->path();
  });
  if (!part.ok()) return part.error();
  parts_.push_back(std::move(*part));
  written_.emplace_back(file_->path(), file_->size());
  writer_.reset();
  file_.reset();
  return {};
}

void WtfFiles::finish(ConvertLog& log) {
  for (storage::Leftover& part : parts_) part.keep();
  for (const auto& [path, bytes] : written_) log.wrote(path, bytes);
  std::error_code ignored;
  const std::string next = path_of(written_.size() + 1);
  if (replaces_ && fs::exists(next, ignored)) log.remark(next + " is older and no part of this");
}

std::string WtfFiles::path_of(size_t number) const {
  if (number == 1) return output_;
  const fs::path whole(output_);
  return fmt::format("{}.{}{}", (whole.parent_path() / whole.stem()).string(), number,
                     whole.extension().string());
}

// The time of day at `ns` of the device clock; absent where the manifest has none.
std::optional<uint64_t> WtfFiles::unix_of(uint64_t ns) const {
  const uint64_t start = identity_.start_unix_ns;
  if (start == 0) return std::nullopt;
  if (ns >= identity_.start_ns) {
    const uint64_t since = ns - identity_.start_ns;
    if (since > UINT64_MAX - start) return std::nullopt;
    return start + since;
  }
  const uint64_t before = identity_.start_ns - ns;
  if (before > start) return std::nullopt;
  return start - before;
}

// The epoch is a whole microsecond of the device clock, so that times are cut to microseconds at
// the same places as everywhere else; the timebase is a whole millisecond where the clock has room
// for it.
wtf::FileHeader WtfFiles::header_at(uint64_t first_ns, uint64_t& epoch_ns) {
  wtf::FileHeader header;
  epoch_ns = first_ns / kNsPerUs * kNsPerUs;
  if (written_.empty()) first_epoch_ns_ = epoch_ns;
  if (const auto day = unix_of(epoch_ns)) {
    const uint64_t back = *day % kNsPerMs / kNsPerUs * kNsPerUs;
    const bool has_room = back <= epoch_ns;
    if (has_room) epoch_ns -= back;
    header.timebase_ms = has_room ? static_cast<double>(*day / kNsPerMs)
                                  : static_cast<double>(*day / kNsPerUs) / 1000;
  } else {
    // Without a time of day the files are still at the right distance from each other.
    header.timebase_ms = static_cast<double>((epoch_ns - first_epoch_ns_) / kNsPerUs) / 1000;
  }
  header.context->title = header_text(identity_.process_name);
  header.context->uri = header_text(identity_.executable);
  header.context->user_agent.value = "collectord";
  header.context->user_agent.platform = atf::to_text(identity_.os);
  nlohmann::json ours = {{"pid", identity_.pid},
                         {"arch", static_cast<int>(identity_.arch)},
                         {"os", static_cast<int>(identity_.os)},
                         {"clock", static_cast<int>(identity_.clock)},
                         {"start_ns", epoch_ns}};
  if (!health_.is_complete()) {
    ours["state"] = storage::session_state_name(health_.state);
    ours["missing"] = missing_;
  }
  header.metadata = nlohmann::json{{std::string(kMetadataKey), ours}}.dump();
  return header;
}

}  // namespace collect::convert
