#include "storage/convert/dial9/dial9_workers.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::convert {
namespace {

using WorkerKind = WorkerEventType::Kind;

// The recorder derives the names from its types, which end in "Event"; its documents do not.
WorkerKind kind_of(std::string_view name) {
  constexpr std::string_view kSuffix = "Event";
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  if (name == "PollStart") return WorkerKind::kPollStart;
  if (name == "PollEnd") return WorkerKind::kPollEnd;
  if (name == "WorkerPark") return WorkerKind::kPark;
  if (name == "WorkerUnpark") return WorkerKind::kUnpark;
  return WorkerKind::kOther;
}

bool is_number(dial9::FieldType type) {
  switch (type) {
    case dial9::FieldType::kVarint:
    case dial9::FieldType::kU8:
    case dial9::FieldType::kU16:
    case dial9::FieldType::kU32:
    case dial9::FieldType::kI64:
      return true;
    default:
      return false;
  }
}

std::optional<size_t> number_field(const dial9::KnownSchema& schema, std::string_view name) {
  const auto field = schema.find(name);
  return field && is_number(schema.type(*field)) ? field : std::nullopt;
}

bool starts(WorkerKind kind) {
  return kind == WorkerKind::kPollStart || kind == WorkerKind::kPark;
}

WorkerKind start_of(WorkerKind end) {
  return end == WorkerKind::kPollEnd ? WorkerKind::kPollStart : WorkerKind::kPark;
}

std::string_view word_for(WorkerKind start) {
  return start == WorkerKind::kPark ? "parks" : "polls";
}

}  // namespace

WorkerEventType::WorkerEventType(const dial9::KnownSchema& schema) {
  const auto worker_field = number_field(schema, "worker_id");
  if (!worker_field || !schema.has_timestamp()) return;
  kind = kind_of(schema.name());
  worker = *worker_field;
  task = number_field(schema, "task_id");
  spawn_location = schema.find("spawn_loc");
  tid = number_field(schema, "tid");
}

std::optional<uint32_t> Dial9Workers::worker_of(uint64_t id) {
  const auto known = positions_.find(id);
  if (known != positions_.end()) return known->second;
  if (workers_.size() == kMaxWorkers) return std::nullopt;
  const auto position = static_cast<uint32_t>(workers_.size());
  positions_.emplace(id, position);
  Worker worker;
  worker.id = id;
  workers_.push_back(worker);
  return position;
}

void Dial9Workers::see(const WorkerEventType& type, const dial9::Event& event) {
  if (type.kind == WorkerKind::kOther || !event[type.worker].present()) return;
  const auto position = worker_of(event[type.worker].u64());
  if (!position) return;
  first_ns_ = std::min(first_ns_.value_or(UINT64_MAX), event.timestamp_ns());
  Worker& worker = workers_[*position];
  if (type.tid && worker.tid == 0) worker.tid = static_cast<uint32_t>(event[*type.tid].u64());
}

Status Dial9Workers::add(const WorkerEventType& type, const dial9::Event& event) {
  if (type.kind == WorkerKind::kOther || !event[type.worker].present()) {
    left_out_.add(event.schema().name());
    return {};
  }
  const auto position = worker_of(event[type.worker].u64());
  if (!position) {
    too_many_workers_.add(event.schema().name());
    return {};
  }
  Pending pending{event.timestamp_ns(), order_++, 0, *position, type.kind};
  if (starts(type.kind)) pending.function_id = function_of(type, event);
  window_.push_back(pending);
  std::push_heap(window_.begin(), window_.end(), later);
  return window_.size() > kSortWindowEvents ? give_on() : Status();
}

uint64_t Dial9Workers::function_of(const WorkerEventType& type, const dial9::Event& event) {
  if (type.kind == WorkerKind::kPark) return session_.function_of("park");
  std::string name = "poll";
  const auto location = type.spawn_location ? event.text(*type.spawn_location) : std::nullopt;
  if (location && !location->empty()) {
    name = location->substr(0, kMaxWorkerFunctionBytes);
  } else if (type.task && event[*type.task].present()) {
    name = fmt::format("task {}", event[*type.task].u64());
  }
  const auto known = function_ids_.find(name);
  if (known != function_ids_.end()) return known->second;
  if (functions_ == kMaxWorkerFunctions) return session_.function_of("other tasks");
  ++functions_;
  const uint64_t id = session_.function_of(name);
  function_ids_.emplace(std::move(name), id);
  return id;
}

// The oldest event of the window into the session.
Status Dial9Workers::give_on() {
  std::pop_heap(window_.begin(), window_.end(), later);
  const Pending event = window_.back();
  window_.pop_back();
  Worker& worker = workers_[event.worker];
  if (!worker.thread) {
    const auto thread =
        session_.add_thread(worker.tid != 0 ? worker.tid : static_cast<uint32_t>(worker.id),
                            fmt::format("worker {}", worker.id), event.ns);
    if (!thread.ok()) return thread.error();
    worker.thread = *thread;
  }
  return starts(event.kind) ? start(worker, event) : end(worker, event);
}

// A worker does one thing at a time: what is still open has lost its end.
Status Dial9Workers::start(Worker& worker, const Pending& event) {
  if (worker.open != WorkerKind::kOther) {
    log_.leave_out(
        fmt::format("ends of {} that the stream does not have: ended where the next one starts",
                    word_for(worker.open)));
    COLLECT_TRY(
        session_.event(*worker.thread, event.ns, worker.function_id, atf::EventKind::kReturn));
  }
  worker.open = event.kind;
  worker.function_id = event.function_id;
  return session_.event(*worker.thread, event.ns, event.function_id, atf::EventKind::kCall);
}

Status Dial9Workers::end(Worker& worker, const Pending& event) {
  const WorkerKind wanted = start_of(event.kind);
  if (worker.open != wanted) {
    log_.leave_out(
        fmt::format("ends of {} whose start the stream does not have", word_for(wanted)));
    return {};
  }
  worker.open = WorkerKind::kOther;
  return session_.event(*worker.thread, event.ns, worker.function_id, atf::EventKind::kReturn);
}

Status Dial9Workers::finish() {
  while (!window_.empty()) COLLECT_TRY(give_on());
  left_out_.report(log_, "an ATF session has calls and returns of threads");
  too_many_workers_.report(log_, fmt::format("of more than {} workers", kMaxWorkers));
  return {};
}

}  // namespace collect::convert
