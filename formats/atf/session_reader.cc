#include "formats/atf/session_reader.h"

#include <algorithm>
#include <string>

namespace collect::atf {

SessionReader::SessionReader(const std::vector<ThreadFiles>& files) {
  threads_.reserve(files.size());
  for (const ThreadFiles& file : files) {
    SessionThread thread;
    thread.n = file.n;
    thread.index = IndexReader::open(file.index, thread.findings, file.bring_index);
    if (thread.index && file.detail) {
      thread.detail = DetailReader::open(*file.detail, thread.findings);
      if (thread.detail && thread.detail->version() != thread.index->version()) {
        thread.findings.add(Severity::kError, Lane::kDetail, Check::kDetailHeader, 5,
                            "the detail file's version differs from the index file's");
        thread.detail.reset();
      }
    }
    threads_.push_back(std::move(thread));
  }
  orders_.resize(threads_.size());
}

uint64_t SessionReader::events() const {
  uint64_t sum = 0;
  for (const SessionThread& thread : threads_) sum += thread.index ? thread.index->size() : 0;
  return sum;
}

const TimeOrder& SessionReader::time_order(size_t position) const {
  std::optional<TimeOrder>& order = orders_[position];
  if (!order) order = TimeOrder::of(*threads_[position].index);
  return *order;
}

std::optional<TimeRange> SessionReader::time_range() const {
  std::optional<TimeRange> all;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].index) continue;
    const auto range = time_order(i).range();
    if (!range) continue;
    if (!all) all = range;
    all->first_ns = std::min(all->first_ns, range->first_ns);
    all->last_ns = std::max(all->last_ns, range->last_ns);
  }
  return all;
}

MergedCursor SessionReader::merged(uint64_t from_ns, uint64_t until_ns) const {
  MergedCursor cursor;
  cursor.session_ = this;
  cursor.until_ns_ = until_ns;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].index) continue;
    const IndexReader& index = *threads_[i].index;
    const TimeOrder& order = time_order(i);
    for (size_t run = 0; run < order.runs(); ++run) {
      const uint64_t seq = order.seek(index, run, from_ns);
      const uint64_t end = order.run_end(run);
      if (seq == end || index.time_of(seq) > until_ns) continue;
      cursor.heap_.push_back({index.time_of(seq), seq, end, i});
    }
  }
  for (size_t at = cursor.heap_.size() / 2; at-- > 0;) cursor.sift_down(at);
  return cursor;
}

std::optional<DetailRecord> SessionReader::detail_of(size_t position,
                                                     const IndexEvent& event) const {
  const SessionThread& thread = threads_[position];
  if (event.detail_seq == kNoDetail || !thread.detail) return std::nullopt;
  return thread.detail->get(event.detail_seq);
}

std::optional<IndexEvent> SessionReader::event_of(size_t position,
                                                  const DetailRecord& record) const {
  const SessionThread& thread = threads_[position];
  if (!thread.index) return std::nullopt;
  return thread.index->get(record.index_seq);
}

void MergedCursor::sift_down(size_t at) {
  const Run moving = heap_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], moving)) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = moving;
}

bool MergedCursor::next(MergedEvent& out) {
  if (heap_.empty()) return false;
  Run& run = heap_.front();
  const IndexReader& index = *session_->threads()[run.thread].index;
  out.thread = run.thread;
  out.seq = run.seq;
  out.event = index.event(run.seq);
  ++run.seq;
  const bool more = run.seq != run.end && index.time_of(run.seq) <= until_ns_;
  if (more) {
    run.time_ns = index.time_of(run.seq);
  } else {
    run = heap_.back();
    heap_.pop_back();
  }
  if (!heap_.empty()) sift_down(0);
  return true;
}

}  // namespace collect::atf
