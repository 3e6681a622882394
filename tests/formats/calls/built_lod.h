// Threads whose events a generator made, and their index.lod in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "formats/calls/lod/lod_builder.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls::testing {

struct Nothing : CallSink {};

struct MadeThread {
  std::vector<Event> events;
  std::vector<Gap> gaps;
  std::vector<Stall> stalls;

  LodSource source() const { return {events.size(), 1, 2, lod_context(gaps, stalls)}; }
};

// Mostly in pairs; some returns are missing, some are of another function, and events are missing
// in places.
inline MadeThread random_thread(uint32_t seed, size_t most_events = 400) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  MadeThread thread;
  std::vector<uint64_t> open;
  uint64_t now = 1 + below(50);
  const size_t count = 20 + below(most_events);
  for (size_t i = 0; i < count; ++i) {
    now += below(12);
    const uint64_t any = 'a' + below(6);
    if (open.empty() || below(2) == 0) {
      thread.events.push_back({now, kCall, any});
      open.push_back(any);
    } else if (below(12) == 0) {
      thread.events.push_back({now, below(2) == 0 ? kReturn : kException, any});
    } else {
      if (below(10) == 0) open.pop_back();
      if (open.empty()) continue;
      thread.events.push_back({now, below(8) == 0 ? kException : kReturn, open.back()});
      open.pop_back();
    }
  }
  const uint64_t losses = below(4);
  for (uint64_t i = 0; i < losses && thread.events.size() > 20; ++i) {
    auto& events = thread.events;
    const size_t first = std::min<size_t>(
        (thread.gaps.empty() ? 0 : thread.gaps.back().before_seq) + below(events.size() / 3),
        events.size());
    const size_t lost = std::min<size_t>(1 + below(20), events.size() - first);
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(first),
                 events.begin() + static_cast<std::ptrdiff_t>(first + lost));
    thread.gaps.push_back({first, lost, 0, 0});
  }
  for (uint64_t at = 0; at < now && seed % 2 == 1;) {
    at += 1 + below(300);
    const uint64_t length = 1 + below(60);
    thread.stalls.push_back({at, at + length, length, 1, below(2) == 0});
    at += length;
  }
  return thread;
}

struct BuiltLod {
  std::vector<uint8_t> file;
  std::unique_ptr<LodSummary> summary = std::make_unique<LodSummary>();  // as it was made
};

inline BuiltLod build(const MadeThread& thread, uint32_t leaf_events) {
  BuiltLod built;
  VectorSink body;
  LodBuilder builder(body, leaf_events);
  Nothing nothing;
  auto header = build_lod(Events(thread.events), thread.gaps, thread.stalls, thread.source(),
                          builder, *built.summary, nothing);
  EXPECT_TRUE(header.ok());
  built.file = *header;
  built.file.insert(built.file.end(), body.bytes().begin(), body.bytes().end());
  return built;
}

}  // namespace collect::calls::testing
