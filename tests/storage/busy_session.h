// A long recording of four threads for the tests of containers.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "storage/session/session.h"
#include "tests/storage/fake_stream.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {

inline constexpr uint64_t kPageRecords = 64;

// Everything that can happen to a recording, in a random order.
class BusySession {
 public:
  BusySession(atf::Version version, uint32_t seed) : random_(seed) {
    for (uint32_t i = 0; i < 4; ++i) streams_.emplace_back(version, i + 1, 100 + i);
  }

  Status run(Session& session, FakeClock& clock) {
    const ModuleInfo module{0, "/usr/bin/program", {1, 2, 3, 4}, 0x400000, 65536, 5, 0};
    COLLECT_TRY(session.add_modules({&module, 1}));
    std::vector<uint64_t> sent(streams_.size()), sent_detail(streams_.size());
    std::vector<uint64_t> dropped(streams_.size());
    for (const FakeStream& stream : streams_) COLLECT_TRY(session.open_stream(stream.info()));
    COLLECT_TRY(session.detail_state({"on", 1500, 0, 0, "asked for"}));
    for (int round = 0; round < 60; ++round) {
      const size_t at = random_() % streams_.size();
      FakeStream& stream = streams_[at];
      stream.add_many(kPageRecords,
                      round % 3 == 0 ? FakeStream::Detail::kLinked : FakeStream::Detail::kNone);
      if (random_() % 8 == 0) {  // overwritten: numbered, never sent
        sent[at] = stream.events();
        sent_detail[at] = stream.details();
        continue;
      }
      Page index = stream.index_page(sent[at], stream.events() - sent[at]);
      if (random_() % 8 == 0) dropped[at] += 5;
      index.lost_total = dropped[at];
      if (sent[at] + kPageRecords != stream.events() || dropped[at] != 0) {
        index.lost_reasons = kLostRingFull;
      }
      index.first_ns = index.last_ns = stream.time_ns();
      COLLECT_TRY(session.append_pages({&index, 1}));
      sent[at] = stream.events();
      if (stream.details() > sent_detail[at]) {
        Page detail = stream.detail_page(sent_detail[at], stream.details() - sent_detail[at]);
        detail.first_ns = detail.last_ns = stream.time_ns();
        COLLECT_TRY(session.append_pages({&detail, 1}));
        sent_detail[at] = stream.details();
      }
      if (round % 16 == 8) {
        StreamInfo renamed = stream.info();
        renamed.thread_name = "renamed in round " + std::to_string(round);
        renamed.named_ns = stream.time_ns();
        COLLECT_TRY(session.open_stream(renamed));
      }
      if (round == 20) COLLECT_TRY(session.marker({stream.time_ns(), "here"}));
      if (round == 30) COLLECT_TRY(session.note("something unusual"));
      if (round == 40) COLLECT_TRY(session.clock_sync({clock.monotonic, -5, 7, 0.5}));
      clock.monotonic += 1'000'000'000;
      COLLECT_TRY(session.commit());
    }
    COLLECT_TRY(session.detail_state({"off", 1'000'000, 0, 0, "asked for"}));
    session.set_lost_without_stream(3);
    for (size_t at = 0; at < streams_.size(); ++at) {
      COLLECT_TRY(session.close_stream(streams_[at].end(dropped[at] + at)));
    }
    return {};
  }

 private:
  std::mt19937 random_;
  std::vector<FakeStream> streams_;
};

}  // namespace collect::storage::test
