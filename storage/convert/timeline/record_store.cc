#include "storage/convert/timeline/record_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace collect::convert {
namespace {

// After so many merged records the pages that were read leave memory.
constexpr uint64_t kDropRecords = uint64_t{1} << 20;

}  // namespace

Status RecordStore::add(TimelineRecord record) {
  record.order = size_++;
  run_.push_back(record);
  return run_.size() < run_records_ ? Status() : put_run();
}

Status RecordStore::put_run() {
  std::sort(run_.begin(), run_.end(),
            [](const auto& a, const auto& b) { return a.key() < b.key(); });
  if (!file_) {
    auto file = read::UnnamedFile::create(directory_);
    if (!file.ok()) return file.error();
    file_.emplace(std::move(*file));
  }
  COLLECT_TRY(file_->write(
      Bytes(reinterpret_cast<const uint8_t*>(run_.data()), run_.size() * sizeof(TimelineRecord))));
  ends_.push_back(size_);
  run_.clear();
  return {};
}

TimelineRecord RecordStore::record_at(uint64_t at) const {
  return load_le<TimelineRecord>(sorted_.bytes().data() + at * sizeof(TimelineRecord));
}

Status RecordStore::sort() {
  if (!file_) {
    std::sort(run_.begin(), run_.end(),
              [](const auto& a, const auto& b) { return a.key() < b.key(); });
    return {};
  }
  if (!run_.empty()) COLLECT_TRY(put_run());
  run_ = {};
  auto bytes = file_->bytes();
  if (!bytes.ok()) return bytes.error();
  sorted_ = std::move(*bytes);
  uint64_t begin = 0;
  for (const uint64_t end : ends_) {
    runs_.push({begin, end, record_at(begin)});
    begin = end;
  }
  return {};
}

bool RecordStore::next(TimelineRecord& record) {
  if (!file_) {
    if (taken_ == run_.size()) return false;
    record = run_[taken_++];
    return true;
  }
  if (runs_.empty()) return false;
  Run run = runs_.top();
  runs_.pop();
  record = run.first;
  if (++run.at != run.end) {
    run.first = record_at(run.at);
    runs_.push(run);
  }
  if (++merged_ % kDropRecords == 0) sorted_.drop_pages();
  return true;
}

}  // namespace collect::convert
