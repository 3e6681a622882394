#include "storage/container/rtc_roller.h"

#include <fmt/core.h>

#include <algorithm>

#include "storage/model/session_layout.h"

namespace collect::storage {

void RtcRoller::adopt(const std::vector<Container>& containers, uint64_t removed) {
  removed_ = removed;
  auto names = fs_.list_directory(directory_);
  if (!names.ok()) return;  // it was just read; the next one to read it reports the error
  for (const std::string& name : *names) {
    const auto number = parse_container_name(name);
    if (!number) continue;
    last_number_ = std::max(last_number_, *number);
    const auto known = std::find_if(containers.begin(), containers.end(),
                                    [&](const Container& one) { return one.name == name; });
    Container container = known != containers.end() ? *known : Container{.name = name};
    if (container.state != "finished") {
      container.state = "unfinished";
      auto file = fs_.open(fmt::format("{}/{}", directory_, name), OpenMode::kRead);
      auto size = file.ok() ? (*file)->size() : Result<uint64_t>(uint64_t{0});
      if (size.ok()) container.bytes = *size;
    }
    finished_bytes_ += container.bytes;
    containers_.push_back(std::move(container));
  }
  // Removed for the budget, or gone with the power, after the last manifest.
  for (const Container& one : containers) {
    removed_ += std::none_of(containers_.begin(), containers_.end(),
                             [&](const Container& there) { return there.name == one.name; });
  }
}

bool RtcRoller::wants_room() const {
  if (!enabled()) return false;
  if (writer_ == nullptr) return true;
  if (options_.roll_bytes != 0 && writer_->bytes_after_finish() >= options_.roll_bytes) return true;
  return options_.roll_ns != 0 && clock_.monotonic_ns() - opened_at_ns_ >= options_.roll_ns;
}

Status RtcRoller::make_room(const Manifest& manifest) {
  if (!wants_room()) return {};
  check(end(manifest));
  if (!enabled()) return {};
  Status begun = begin(manifest);
  if (!begun.ok() && begun.code() == Code::kExhausted && writer_ == nullptr) return begun;
  check(begun);
  return {};
}

void RtcRoller::release_file() {
  if (writer_ == nullptr || !sink_->is_open()) return;
  flush();
  if (sink_ == nullptr) return;  // it failed, which take_problem() says
  if (durability_ == Durability::kFsync) check(sink_->sync());
  if (sink_ != nullptr) sink_->close();
}

Status RtcRoller::hold_file() {
  if (sink_ == nullptr || sink_->is_open()) return {};
  Status opened = sink_->open();
  if (!opened.ok() && opened.code() == Code::kExhausted) return opened;
  check(opened);
  return {};
}

size_t RtcRoller::open_files() const {
  return sink_ != nullptr && sink_->is_open() ? 1 : 0;
}

Result<std::string> RtcRoller::roll(const Manifest& manifest) {
  if (!options_.enabled) {
    return Error{Code::kUnsupported, "no containers are written: set rtc = true"};
  }
  if (failed_) return Error{Code::kIo, "no more containers are written: an earlier one failed"};
  Status status = end(manifest);
  if (status.ok()) status = begin(manifest);
  const bool later = !status.ok() && status.code() == Code::kExhausted && writer_ == nullptr;
  if (!later) check(status);  // else the next page begins it
  if (!status.ok()) return status.error();
  return fmt::format("{}/{}", directory_, containers_.back().name);
}

Status RtcRoller::begin(const Manifest& manifest) {
  if (last_number_ == kMaxContainerNumber) {
    return Error{Code::kLimit,
                 fmt::format("{}: more than {} containers", directory_, kMaxContainerNumber)};
  }
  const std::string name = container_name(last_number_ + 1);
  auto file = fs_.open(fmt::format("{}/{}", directory_, name), OpenMode::kCreate);
  if (!file.ok()) return file.error();
  ++last_number_;
  containers_.push_back({.name = name, .state = "open"});
  opened_at_ns_ = clock_.monotonic_ns();
  sink_ = std::make_unique<FileSink>(fs_, std::move(*file));
  auto writer = CaptureWriter::create(*sink_, manifest);
  if (!writer.ok()) return writer.error();
  writer_ = std::move(*writer);
  return {};
}

void RtcRoller::note_size() {
  if (writer_ == nullptr) return;
  Container& container = containers_.back();
  container.bytes = writer_->bytes();
  container.first_ns = writer_->first_ns();
  container.last_ns = writer_->last_ns();
}

Status RtcRoller::end(const Manifest& manifest) {
  if (writer_ == nullptr) return {};
  Status status = writer_->finish(manifest);
  if (status.ok() && durability_ == Durability::kFsync) status = sink_->sync();
  note_size();
  containers_.back().state = status.ok() ? "finished" : "unfinished";
  finished_bytes_ += containers_.back().bytes;
  writer_.reset();
  sink_.reset();
  if (status.ok()) keep_budget();
  return status;
}

// The newest stays, however large it is.
void RtcRoller::keep_budget() {
  if (options_.budget_bytes == 0) return;
  uint64_t total = 0;
  for (const Container& container : containers_) total += container.bytes;
  while (containers_.size() > 1 && total > options_.budget_bytes) {
    const Container& oldest = containers_.front();
    const Status removed = fs_.remove_file(fmt::format("{}/{}", directory_, oldest.name));
    if (!removed.ok()) {
      check(removed);
      return;
    }
    total -= oldest.bytes;
    finished_bytes_ -= oldest.bytes;
    containers_.erase(containers_.begin());
    ++removed_;
  }
}

void RtcRoller::page(const Page& page) {
  if (writer_ == nullptr) return;
  unflushed_ = true;
  check(writer_->page(page));
}

void RtcRoller::passthrough(PassthroughKind kind, std::span<const Bytes> parts) {
  if (writer_ == nullptr) return;
  unflushed_ = true;
  check(writer_->passthrough(kind, parts));
}

void RtcRoller::change(const Manifest& delta) {
  if (writer_ == nullptr) return;
  unflushed_ = true;
  check(writer_->change(delta));
}

void RtcRoller::log(std::string_view line) {
  if (writer_ == nullptr) return;
  unflushed_ = true;
  check(writer_->log(line));
}

void RtcRoller::marker(const Marker& marker) {
  if (writer_ == nullptr) return;
  unflushed_ = true;
  check(writer_->marker(marker));
}

void RtcRoller::flush() {
  if (writer_ == nullptr || !unflushed_) return;
  unflushed_ = false;
  check(writer_->flush());
  note_size();
}

void RtcRoller::finish(const Manifest& manifest) {
  // A session without pages has a container too: it alone shows that there were none.
  if (enabled() && containers_.empty()) check(begin(manifest));
  end_container(manifest);
}

void RtcRoller::check(const Status& status) {
  if (status.ok() || failed_) return;
  problem_ = "no more containers are written: " + to_string(status.error());
  abandon();
}

void RtcRoller::abandon() {
  failed_ = true;
  note_size();
  if (writer_ != nullptr) finished_bytes_ += containers_.back().bytes;
  if (!containers_.empty() && containers_.back().state == "open") {
    containers_.back().state = "unfinished";
  }
  writer_.reset();
  sink_.reset();
}

std::optional<std::string> RtcRoller::take_problem() {
  return std::exchange(problem_, std::nullopt);
}

}  // namespace collect::storage
