// Takes what the recorder hands out, as the drain thread does, and keeps it per stream for a test
// to look at.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "agent/ring/modules.h"
#include "agent/ring/recorder.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"

namespace collect::agent {

// Addresses inside this program, whose ids are their distance from its base.
inline uint64_t function(uint64_t n) {
  static const char code[64] = {};
  return reinterpret_cast<uint64_t>(code) + n;
}
inline uint64_t id_of(uint64_t n) {
  ModuleRange range;
  EXPECT_TRUE(module_find(function(n), range));
  return uint64_t{range.module_id} << 32 | (function(n) - range.base);
}

struct TakenLane {
  // One for each span: a vector of all would copy all of it when it grows, and a drain that takes
  // so long makes hooks in signal handlers give up.
  std::deque<std::vector<uint8_t>> pieces;
  std::vector<Page> spans;  // their bytes are not valid any more
  uint64_t records = 0;
  uint64_t skipped = 0;  // numbers that were jumped over
  uint64_t lost_total = 0;

  uint64_t next() const { return records + skipped; }
  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> all;
    for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
    return all;
  }
};

struct TakenStream {
  uint32_t thread_id = 0;
  uint32_t recording = 0;
  uint64_t left_out = 0;
  TakenLane index;
  TakenLane detail;

  template <class Event = atf::IndexEventV2>
  std::vector<Event> events() const {
    const std::vector<uint8_t> bytes = index.bytes();
    std::vector<Event> events(bytes.size() / sizeof(Event));
    if (!events.empty()) std::memcpy(events.data(), bytes.data(), bytes.size());
    return events;
  }
};

class RingDrain {
 public:
  // Everything that can be had now; acknowledged when `acknowledge_too`.
  void take(bool acknowledge_too = true) {
    for (uint32_t slot = 0; slot < stream_slots(); ++slot) {
      Stream* stream = stream_at(slot);
      if (stream == nullptr) continue;
      StreamInfo info{};
      stream_info(*stream, info);
      TakenStream& taken = streams[info.stream_id];
      taken.thread_id = info.thread_id;
      taken.recording = info.recording;
      // What comes meanwhile is for the next time: a thread that is faster never ends this one.
      const StreamCounts there = stream_counts(*stream);
      take_lane(*stream, Lane::kIndex, taken.index, there.index_count, acknowledge_too);
      take_lane(*stream, Lane::kDetail, taken.detail, there.detail_count, acknowledge_too);
      const StreamCounts counts = stream_counts(*stream);
      taken.left_out = counts.calls_left_out;
      taken.index.lost_total = counts.index_lost;
      taken.detail.lost_total = counts.detail_lost;
    }
  }

  uint64_t records() const {
    uint64_t sum = 0;
    for (const auto& [id, stream] : streams) sum += stream.index.records;
    return sum;
  }
  uint64_t lost() const {
    uint64_t sum = 0;
    for (const auto& [id, stream] : streams) sum += stream.index.lost_total + stream.index.skipped;
    return sum;
  }

  uint64_t left_out() const {
    uint64_t sum = 0;
    for (const auto& [id, stream] : streams) sum += stream.left_out;
    return sum;
  }

  // A thread that continues calling is inside a hook at some moments, which then records nothing.
  static bool ends(Stream& stream) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!stream_ended(stream)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Takes all the time while `work` runs, on a thread of its own; then finishes.
  template <class Work>
  void drain_while(Work work) {
    std::atomic<bool> done{false};
    std::thread drainer([&] {
      ignore_this_thread();
      while (!done.load()) {
        take();
        prepare_pages();
        recalibrate_clock();
      }
    });
    work();
    done = true;
    drainer.join();
    finish();
  }

  // Ends the recording and gives every stream back.
  void finish() {
    stop_recording();
    take();
    for (uint32_t slot = 0; slot < stream_slots(); ++slot) {
      Stream* stream = stream_at(slot);
      if (stream == nullptr) continue;
      EXPECT_TRUE(ends(*stream));
      EXPECT_TRUE(all_acknowledged(*stream));
      release_stream(*stream);
    }
    EXPECT_EQ(recorder_stats().buffer_used, 0u) << "a page was not given back";
  }

  std::map<uint32_t, TakenStream> streams;

 private:
  static void take_lane(Stream& stream, Lane which, TakenLane& lane, uint64_t until,
                        bool acknowledge_too) {
    Page span;
    while (lane.next() < until && next_span(stream, which, 1u << 20, true, span)) {
      ASSERT_GE(span.first_seq, lane.next());
      lane.skipped += span.first_seq - lane.next();
      lane.records += span.record_count;
      lane.pieces.emplace_back(span.bytes.begin(), span.bytes.end());
      lane.spans.push_back(span);
      mark_sent(stream, which, span);
      if (acknowledge_too) acknowledge(stream, which, lane.next());
    }
  }
};

}  // namespace collect::agent
