// The three cases of every decoder: each prefix of a valid input, each single-byte flip, each
// declared limit plus one. Run under the sanitizers they also show that no byte outside is read, so
// every input is copied into a buffer of its own length.
#include <gtest/gtest.h>

#include "formats/atf/check.h"
#include "formats/atf/payload.h"
#include "formats/atf/session_reader.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

struct Seen {
  ThreadReport report;
  uint64_t merged = 0;
};

// Everything that a reader offers, on these bytes. What must hold of any input is asserted here.
Seen read_everything(const std::vector<uint8_t>& index, const std::vector<uint8_t>& detail) {
  Seen seen;
  seen.report = check_thread(0, index, Bytes(detail));
  const SessionReader session({{0, index, Bytes(detail)}});
  MergedCursor cursor = session.merged();
  uint64_t previous = 0;
  for (MergedEvent event; cursor.next(event); ++seen.merged) {
    EXPECT_LE(previous, event.event.timestamp_ns);
    previous = event.event.timestamp_ns;
    if (const auto record = session.detail_of(0, event.event)) {
      (void)session.event_of(0, *record);
      (void)decode_function_payload(record->payload);
    }
  }
  EXPECT_EQ(seen.merged, session.events());
  EXPECT_EQ(seen.merged, seen.report.events);
  EXPECT_LE(seen.report.events, index.size() / kEventBytes);
  if (const auto& reader = session.threads()[0].detail) {
    EXPECT_EQ(reader->size(), seen.report.detail.records);
    EXPECT_LE(reader->size(), detail.size() / kDetailHeaderBytes);
  }
  return seen;
}

class DecoderCases : public ::testing::TestWithParam<Version> {
 protected:
  ThreadPlan plan() const {
    ThreadPlan plan;
    plan.version = GetParam();
    plan.events = 12;
    plan.detail_every = 4;
    return plan;
  }
};

INSTANTIATE_TEST_SUITE_P(Atf, DecoderCases, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(DecoderCases, EveryPrefixOfTheIndex) {
  const ThreadBytes made = build_thread(plan());
  for (size_t length = 0; length < made.index.size(); ++length) {
    const std::vector<uint8_t> prefix(made.index.begin(),
                                      made.index.begin() + static_cast<ptrdiff_t>(length));
    const Seen seen = read_everything(prefix, made.detail);
    ASSERT_EQ(seen.report.rejected, length < 64) << length;
    if (length < 64) continue;
    // Cut before the footer is whole, the file counts as unfinalized: as many events as fit. The
    // first bytes of a cut footer may look like one more event; that one cannot be known.
    const uint64_t fit = (length - 64) / kEventBytes;
    ASSERT_EQ(seen.report.events, fit) << length;
    ASSERT_EQ(seen.report.state, FileState::kUnfinalized) << length;
  }
}

TEST_P(DecoderCases, EveryPrefixOfTheDetailFile) {
  const ThreadBytes made = build_thread(plan());
  uint64_t previous = 0;
  for (size_t length = 0; length < made.detail.size(); ++length) {
    const std::vector<uint8_t> prefix(made.detail.begin(),
                                      made.detail.begin() + static_cast<ptrdiff_t>(length));
    const Seen seen = read_everything(made.index, prefix);
    ASSERT_EQ(seen.report.detail.rejected, length < 64) << length;
    ASSERT_GE(seen.report.detail.records, previous) << length << ": more bytes, fewer records";
    previous = seen.report.detail.records;
  }
  EXPECT_EQ(previous, 3u);
}

TEST_P(DecoderCases, EverySingleByteFlipOfTheIndex) {
  const ThreadBytes made = build_thread(plan());
  const size_t section_end = made.index.size() - kFooterBytes;
  for (size_t at = 0; at < made.index.size(); ++at) {
    for (const uint8_t flip : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xFF}}) {
      std::vector<uint8_t> bytes = made.index;
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ flip);
      const Seen seen = read_everything(bytes, made.detail);
      // Within the events the checksum sees every flip; no event is lost to one.
      if (at < kHeaderBytes || at >= section_end) continue;
      ASSERT_EQ(seen.report.checksum, ChecksumState::kBad) << at;
      ASSERT_EQ(seen.report.events, 12u) << at;
      ASSERT_GE(seen.report.findings.errors(), 1u) << at;
    }
  }
}

TEST_P(DecoderCases, EverySingleByteFlipOfTheDetailFile) {
  const ThreadBytes made = build_thread(plan());
  const size_t section_end = made.detail.size() - kFooterBytes;
  for (size_t at = 0; at < made.detail.size(); ++at) {
    for (const uint8_t flip : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xFF}}) {
      std::vector<uint8_t> bytes = made.detail;
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ flip);
      const Seen seen = read_everything(made.index, bytes);
      ASSERT_EQ(seen.report.events, 12u) << at << ": the index does not suffer";
      if (at < kHeaderBytes || at >= section_end) continue;
      ASSERT_EQ(seen.report.detail.checksum, ChecksumState::kBad) << at;
    }
  }
}

// Every count, offset and length of the two files, one beyond what is there, and as far as it goes.
TEST_P(DecoderCases, EveryLimitPlusOne) {
  const ThreadBytes made = build_thread(plan());
  const size_t index_footer = made.index.size() - kFooterBytes;
  const size_t detail_footer = made.detail.size() - kFooterBytes;
  for (const size_t at :
       {size_t{24}, size_t{32}, size_t{40}, index_footer + 8, index_footer + 32}) {
    for (const uint64_t add : {uint64_t{1}, UINT64_MAX - load_le<uint64_t>(&made.index[at])}) {
      std::vector<uint8_t> bytes = made.index;
      store_le<uint64_t>(&bytes[at], load_le<uint64_t>(&bytes[at]) + add);
      const Seen seen = read_everything(bytes, made.detail);
      EXPECT_TRUE(seen.report.rejected || seen.report.findings.errors() != 0 ||
                  seen.report.state == FileState::kStaleHeader)
          << at << " " << add;
    }
  }
  for (const size_t at : {size_t{20}, size_t{28}, size_t{36}, size_t{44}, size_t{52},
                          detail_footer + 8, detail_footer + 16}) {
    for (const uint64_t add : {uint64_t{1}, UINT64_MAX - load_le<uint64_t>(&made.detail[at])}) {
      std::vector<uint8_t> bytes = made.detail;
      store_le<uint64_t>(&bytes[at], load_le<uint64_t>(&bytes[at]) + add);
      const Seen seen = read_everything(made.index, bytes);
      EXPECT_NE(seen.report.findings.errors(), 0u) << at << " " << add;
    }
  }
  std::vector<uint8_t> bytes = made.detail;
  for (const uint32_t length :
       {0u, 23u, static_cast<uint32_t>(detail_footer - 64 + 1), 0xFFFFFFFFu}) {
    store_le<uint32_t>(&bytes[64], length);
    const Seen seen = read_everything(made.index, bytes);
    EXPECT_EQ(seen.report.detail.records, 0u) << length;
    EXPECT_NE(seen.report.findings.errors(), 0u) << length;
  }
}

}  // namespace
}  // namespace collect::atf
