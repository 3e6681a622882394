// Single faults in unsealed sessions, and what recovery makes of them: those that were seen.
#include <algorithm>
#include <functional>

#include "storage/model/session_layout.h"
#include "storage/session/live_manifest.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Octets = std::vector<uint8_t>;
constexpr uint64_t kEvents = 1191;

class DamagedRecovery : public SessionTest {
 protected:
  DamagedRecovery() : stream_(atf::Version::kV2, 1, 100) { stream_.add_many(kEvents); }

  // All events in pages of 100, left as a killed collector leaves them.
  void record(bool with_containers) {
    SessionOptions with = options();
    with.capture.enabled = with_containers;
    auto session = Session::create(fs, with, test_identity());
    ASSERT_OK(session);
    ASSERT_OK((*session)->open_stream(stream_.info()));
    for (uint64_t first = 0; first < kEvents; first += 100) {
      ASSERT_OK(append(**session, page(first)));
    }
    clock.monotonic += 2 * kManifestIntervalNs;  // so that the manifest knows them
    ASSERT_OK((*session)->commit());
    directory_ = (*session)->directory();
    index_ = directory_ + "/thread_0/index.atf";
  }
  Page page(uint64_t first) {
    return stream_.index_page(first, std::min<uint64_t>(100, kEvents - first));
  }
  void change(const std::function<void(Octets&)>& change) {
    Octets bytes = read_file(index_);
    change(bytes);
    write_file(index_, bytes);
  }
  RecoveredSession recover() {
    auto recovered = recover_session(fs, options(), directory_);
    EXPECT_OK(recovered);
    expect_reference_ok(directory_);
    return recovered.ok() ? *recovered : RecoveredSession{};
  }
  // The events of the sealed file, but those of [first, end).
  void expect_all_but(uint64_t first, uint64_t end) {
    Octets expected = stream_.index_bytes();
    expected.erase(expected.begin() + static_cast<ptrdiff_t>(32 * first),
                   expected.begin() + static_cast<ptrdiff_t>(32 * end));
    EXPECT_EQ(section_of(index_), expected);
    const Manifest manifest = manifest_of(directory_);
    EXPECT_EQ(manifest.threads[0].lost_events, end - first);
    if (first == end) return;
    ASSERT_EQ(manifest.gaps.size(), 1u);
    EXPECT_EQ(manifest.gaps[0].before_seq, first);
    EXPECT_EQ(manifest.gaps[0].numbered_lost, end - first);
    EXPECT_EQ(manifest.gaps[0].reasons, uint32_t{kLostDamaged});
  }

  FakeStream stream_;
  std::string directory_;
  std::string index_;
};

// Seen: 605 of 1,191 events stayed, "0 lost".
TEST_F(DamagedRecovery, TimeThatIsTooHighCostsItsEvent) {
  for (const uint64_t event : {uint64_t{0}, uint64_t{5}, kEvents / 2, kEvents - 2}) {
    record(false);
    change([&](Octets& bytes) { bytes[64 + 32 * event + 7] ^= 0x40; });
    const RecoveredSession recovered = recover();
    EXPECT_EQ(recovered.totals.events, kEvents - 1);
    EXPECT_EQ(recovered.problems.size(), 1u);
    expect_all_but(event, event + 1);
  }
}

TEST_F(DamagedRecovery, ContainerGivesTheRecordBack) {
  record(true);
  change([&](Octets& bytes) { bytes[64 + 32 * 5 + 7] ^= 0x40; });
  const RecoveredSession recovered = recover();
  EXPECT_EQ(recovered.restored_records, 1u);
  EXPECT_TRUE(recovered.problems.empty());
  expect_all_but(0, 0);
}

// Nothing else is damaged: a function's id has no order and no checksum.
TEST_F(DamagedRecovery, ContainerGivesAFunctionBack) {
  record(true);
  change([&](Octets& bytes) { bytes[64 + 32 * 5 + 8] ^= 0x40; });
  EXPECT_EQ(recover().restored_records, 1u);
  expect_all_but(0, 0);
}

TEST_F(DamagedRecovery, ContainerGivesTheEndBack) {
  record(true);
  change([&](Octets& bytes) { bytes.resize(64 + 32 * 700 + 9); });
  recover();
  expect_all_but(0, 0);
}

TEST_F(DamagedRecovery, ContainerGivesTheManifestBack) {
  record(true);
  write_file(directory_ + "/manifest.json", {'{'});
  recover();
  EXPECT_EQ(manifest_of(directory_).identity.process_name, "program");
  expect_all_but(0, 0);
}

// namhyung/uftrace#908: from some record on, times are half of what they were.
TEST_F(DamagedRecovery, RunOfWrongTimesCostsItself) {
  record(false);
  change([&](Octets& bytes) {
    for (uint64_t event = 300; event < 460; ++event) {
      uint8_t* const at = bytes.data() + 64 + 32 * event;
      store_le(at, load_le<uint64_t>(at) / 2);
    }
  });
  recover();
  expect_all_but(300, 460);
}

// efficios/barectf#15: zeros behind the last record, of a file that was made longer before.
TEST_F(DamagedRecovery, ZerosBehindTheEventsAreNoEvents) {
  record(false);
  change([](Octets& bytes) { bytes.resize(bytes.size() + 100'000); });
  recover();
  expect_all_but(0, 0);
}

// foxglove/mcap#1390: a damaged block in the middle ended the recovery.
TEST_F(DamagedRecovery, ZeroedPageCostsItself) {
  record(false);
  change([](Octets& bytes) { std::fill(bytes.begin() + 4096, bytes.begin() + 8192, uint8_t(0)); });
  recover();
  expect_all_but(126, 254);
}

// An agent that comes back continues behind all of its events.
TEST_F(DamagedRecovery, AgentContinuesAfterTheDamage) {
  record(false);
  change([](Octets& bytes) { bytes[64 + 32 * 5 + 7] ^= 0x40; });
  FakeStream longer(atf::Version::kV2, 1, 100);
  longer.add_many(kEvents + 50);
  auto session = Session::resume(fs, options(), directory_);
  ASSERT_OK(session);
  EXPECT_EQ((*session)->positions()[0].index_next, kEvents);
  ASSERT_OK((*session)->open_stream(longer.info()));
  ASSERT_OK(append(**session, longer.index_page(kEvents, 50)));
  ASSERT_OK((*session)->close_stream(longer.end()));
  ASSERT_OK((*session)->seal(SessionState::kComplete, ""));
  EXPECT_EQ(manifest_of(directory_).threads[0].events, kEvents + 49);
  EXPECT_EQ(manifest_of(directory_).threads[0].lost_events, 1u);
  expect_reference_ok(directory_);
}

// The last time is too high, which no one can see, until events come behind it.
TEST_F(DamagedRecovery, StoresEventsAfterATooHighTime) {
  record(false);
  change([](Octets& bytes) { bytes[64 + 32 * (kEvents - 1) + 7] ^= 0x40; });
  FakeStream longer(atf::Version::kV2, 1, 100);
  longer.add_many(kEvents + 50);
  auto session = Session::resume(fs, options(), directory_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->open_stream(longer.info()));
  ASSERT_OK(append(**session, longer.index_page(kEvents, 50)));
  ASSERT_OK((*session)->close_stream(longer.end()));
  ASSERT_OK((*session)->seal(SessionState::kComplete, ""));
  const Manifest manifest = manifest_of(directory_);
  EXPECT_EQ(manifest.threads[0].events, kEvents + 49);
  ASSERT_EQ(manifest.gaps.size(), 1u);
  EXPECT_EQ(manifest.gaps[0].before_seq, kEvents - 1);
  EXPECT_EQ(manifest.gaps[0].reasons, uint32_t{kLostDamaged});
  expect_reference_ok(directory_);
}

}  // namespace
}  // namespace collect::storage::test
