#include "storage/container/passthrough_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "formats/dial9/read/stream_decoder.h"
#include "storage/model/switch_times.h"

namespace collect::storage {
namespace {

constexpr size_t kScanBytes = 1u << 20;  // read at once by what goes over a whole file

}  // namespace

Status PassthroughFile::create() {
  auto file = fs_.open(path_, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  unsynced_ = true;
  return {};
}

Status PassthroughFile::reopen() {
  auto file = fs_.open(path_, OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  auto size = file_->size();
  if (!size.ok()) return size.error();
  switch (kind_) {
    case PassthroughKind::kDial9:
      COLLECT_TRY(scan_dial9(*size));
      break;
    case PassthroughKind::kSwitches:
      COLLECT_TRY(scan_switches(*size));
  }
  unsynced_ = true;
  if (bytes_ == *size) return {};
  cut_bytes_ = *size - bytes_;
  length_uncertain_ = true;
  return restore_length();
}

Status PassthroughFile::scan_dial9(uint64_t size) {
  dial9::StreamOptions options;
  options.pools = dial9::PoolStorage::kNone;
  dial9::StreamDecoder decoder(options);
  dial9::Visitor ignored;
  std::vector<uint8_t> block(static_cast<size_t>(std::min<uint64_t>(size, kScanBytes)));
  for (uint64_t at = 0; at < size;) {
    auto got = file_->read_at(at, block);
    if (!got.ok()) return got.error();
    if (*got == 0) break;  // shorter than it said: what is not there is not counted
    at += *got;
    if (decoder.push(Bytes(block).first(*got), ignored) == dial9::DecodeState::kFailed) break;
  }
  bytes_ = decoder.whole_bytes();
  if (bytes_ == size) return {};
  const auto problem = decoder.finish();
  if (problem) {
    cut_reason_ =
        fmt::format("{}: {}", dial9::rule_name(problem->rule), dial9::to_error(*problem).message);
  }
  return {};
}

Status PassthroughFile::scan_switches(uint64_t size) {
  std::vector<uint8_t> block(static_cast<size_t>(std::min<uint64_t>(size, 2 * kScanBytes)));
  for (size_t whole = 1; bytes_ < size && whole != 0; bytes_ += whole) {
    const auto got = file_->read_at(bytes_, block);
    if (!got.ok()) return got.error();
    whole = whole_switch_frames(Bytes(block).first(*got));
  }
  if (bytes_ != size) cut_reason_ = "no frame of switches";
  return {};
}

Status PassthroughFile::restore_length() {
  if (!length_uncertain_) return {};
  COLLECT_TRY(file_->truncate(bytes_));
  length_uncertain_ = false;
  unsynced_ = true;
  return {};
}

Status PassthroughFile::append(std::span<const Bytes> parts) {
  COLLECT_TRY(restore_length());
  const Status written = file_->write_at(bytes_, parts);
  if (!written.ok()) {
    length_uncertain_ = true;
    // Tried again before the next write and before sealing; the error that counts is the first.
    (void)restore_length();
    return written;
  }
  for (const Bytes part : parts) bytes_ += part.size();
  unsynced_ = true;
  return {};
}

Status PassthroughFile::sync() {
  if (!sync_failure_.ok() || !unsynced_) return sync_failure_;
  sync_failure_ = file_->sync();
  if (sync_failure_.ok()) unsynced_ = false;
  return sync_failure_;
}

Status PassthroughFile::seal(bool durable) {
  COLLECT_TRY(restore_length());
  return durable ? sync() : Status();
}

}  // namespace collect::storage
