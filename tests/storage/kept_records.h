// What a sealed session holds, record for record, against what its agent recorded. Works on the
// files' bytes and the manifest alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/manifest/manifest.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {

// A version 2 record without its link, which sealing sets.
inline std::vector<uint8_t> without_link(Bytes record, size_t link_offset) {
  std::vector<uint8_t> bytes(record.begin(), record.end());
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(link_offset), 8, uint8_t(0));
  return bytes;
}

// Every event of the thread is the one that the gaps say it is, byte for byte; of the detail
// records, all that were promised and have their event are there. Numbers below `promise` are
// stored or lost for a reason of the agent's, none of them is damaged. `lost_details`: reported by
// the agent.
inline void expect_kept(const std::string& directory, const Manifest& manifest,
                        const FakeStream& stream, const StreamPosition& promise,
                        const std::set<uint64_t>& lost_details = {}) {
  const auto thread =
      std::find_if(manifest.threads.begin(), manifest.threads.end(),
                   [&](const auto& one) { return one.stream_id == stream.stream_id(); });
  ASSERT_NE(thread, manifest.threads.end());
  std::map<uint64_t, uint64_t> lost_before;  // file position -> numbers lost right before it
  uint64_t lost = 0;
  uint64_t numbered = 0;
  for (const Gap& gap : manifest.gaps) {
    if (gap.thread != thread->id || gap.lane != Lane::kIndex) continue;
    if ((gap.reasons & kLostDamaged) != 0) {
      EXPECT_GE(gap.before_seq + numbered, promise.index_next);
    }
    lost_before[gap.before_seq] += gap.numbered_lost;
    lost += gap.lost;
    numbered += gap.numbered_lost;
  }
  EXPECT_EQ(thread->lost_events, lost);
  EXPECT_EQ(thread->index_next, thread->events + numbered);
  EXPECT_GE(thread->index_next, promise.index_next);

  const std::string files = directory + "/thread_" + std::to_string(thread->id);
  const std::vector<uint8_t> index = section_of(files + "/index.atf");
  ASSERT_EQ(index.size(), thread->events * atf::kEventBytes);
  std::set<uint64_t> stored;
  uint64_t number = 0;
  for (uint64_t at = 0; at < thread->events; ++at, ++number) {
    if (const auto gap = lost_before.find(at); gap != lost_before.end()) number += gap->second;
    ASSERT_LT(number, stream.events());
    ASSERT_EQ(
        without_link(Bytes(index).subspan(at * atf::kEventBytes, atf::kEventBytes), 16),
        without_link(
            Bytes(stream.index_bytes()).subspan(number * atf::kEventBytes, atf::kEventBytes), 16))
        << "event " << number << " at " << at;
    stored.insert(number);
  }

  std::vector<uint8_t> detail;
  if (thread->has_detail) detail = section_of(files + "/detail.atf");
  size_t at = 0;
  for (uint64_t n = 0; n < promise.detail_next; ++n) {
    if (lost_details.contains(n) || !stored.contains(stream.event_of_detail(n))) continue;
    const std::vector<uint8_t>& record = stream.detail(n);
    ASSERT_LE(at + record.size(), detail.size()) << "detail record " << n;
    ASSERT_EQ(without_link(Bytes(detail).subspan(at, record.size()), 8), without_link(record, 8))
        << "detail record " << n;
    at += record.size();
  }
}

}  // namespace collect::storage::test
