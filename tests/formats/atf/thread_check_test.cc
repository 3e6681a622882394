// Ranges of every size, looked at in any order, give the report of one range: also of damaged
// files, with the damage at a seam.
#include "formats/atf/thread_check.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "formats/core/crc32.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

constexpr uint64_t kOneRange = UINT64_MAX;

std::string described(const std::optional<uint64_t>& number) {
  return number ? std::to_string(*number) : "none";
}

// Everything that a report says.
std::string described(const ThreadReport& report) {
  std::ostringstream out;
  out << report.n << ' ' << report.rejected << report.header.has_value() << ' '
      << to_text(report.state) << ' ' << to_text(report.checksum) << "\nevents " << report.events
      << ' ' << report.calls << ' ' << report.returns << ' ' << report.exceptions << ' '
      << report.unknown_kinds << "\ntimes " << described(report.first_ns) << ' '
      << described(report.last_ns) << ' ' << described(report.min_ns) << ' '
      << described(report.max_ns) << ' ' << report.backward_steps << "\ndepth " << report.max_depth
      << " functions " << report.functions << " links " << report.links << " trailing "
      << report.trailing_bytes << '\n';
  const DetailReport& detail = report.detail;
  out << "detail " << detail.present << detail.rejected << detail.header.has_value() << ' '
      << to_text(detail.state) << ' ' << to_text(detail.checksum) << ' ' << detail.records << ' '
      << detail.bytes << ' ' << detail.trailing_bytes << ' ' << detail.documented_payloads << ' '
      << detail.tracer_payloads << ' ' << detail.opaque_payloads << '\n';
  for (const auto& [type, count] : detail.types) out << "type " << type << ": " << count << '\n';
  out << "findings " << report.findings.errors() << ' ' << report.findings.warnings() << ' '
      << report.findings.notes() << '\n';
  for (const Finding& finding : report.findings.list()) {
    out << static_cast<int>(finding.severity) << (finding.lane == Lane::kIndex ? " index " : " ")
        << check_name(finding.check) << ' ' << finding.offset << ": " << finding.sentence << '\n';
  }
  return out.str();
}

std::optional<Bytes> detail_of(const ThreadBytes& made) {
  if (made.detail.empty()) return std::nullopt;
  return Bytes(made.detail);
}

// The ranges are looked at in an order of `random`, and added in theirs.
std::string checked(const ThreadBytes& made, uint64_t range_bytes, std::mt19937& random) {
  ThreadCheck check(3, made.index, detail_of(made), range_bytes);
  std::vector<CheckRange> ranges;
  while (auto range = check.next()) ranges.push_back(*range);
  std::vector<size_t> order(ranges.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<RangeTally> tallies(ranges.size());
  for (const size_t i : order) tallies[i] = check.look(ranges[i]);
  for (RangeTally& tally : tallies) check.add(std::move(tally));
  return described(check.finish());
}

class CheckRanges : public ::testing::TestWithParam<Version> {
 protected:
  void expect_same(const ThreadBytes& made, const std::string& what) {
    const std::string whole = checked(made, kOneRange, random_);
    EXPECT_EQ(described(check_thread(3, made.index, detail_of(made))), whole) << what;
    for (const uint64_t bytes : {1, 32, 33, 64, 96, 160, 224, 500, 1000, 4096}) {
      ASSERT_EQ(checked(made, bytes, random_), whole) << what << ", ranges of " << bytes;
    }
  }
  ThreadBytes build(size_t events, size_t detail_every, bool finalize = true) {
    ThreadPlan plan;
    plan.version = GetParam();
    plan.events = events;
    plan.detail_every = detail_every;
    plan.finalize = finalize;
    return build_thread(plan);
  }

  std::mt19937 random_{20260131};
};

INSTANTIATE_TEST_SUITE_P(Atf, CheckRanges, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(CheckRanges, GoodFiles) {
  for (const size_t events : {0, 1, 2, 3, 97}) {
    for (const size_t detail_every : {0, 1, 3, 40}) {
      for (const bool finalize : {true, false}) {
        const ThreadBytes made = build(events, detail_every, finalize);
        expect_same(made, std::to_string(events) + " events, a record at every " +
                              std::to_string(detail_every));
        ThreadCheck check(3, made.index, detail_of(made), 64);
        while (const auto range = check.next()) check.add(check.look(*range));
        EXPECT_EQ(check.finish().findings.errors(), 0u);
      }
    }
  }
}

TEST_P(CheckRanges, EveryBitOfASmallFile) {
  const ThreadBytes good = build(9, 2);
  for (std::vector<uint8_t> ThreadBytes::* file : {&ThreadBytes::index, &ThreadBytes::detail}) {
    for (size_t bit = 0; bit < 8 * (good.*file).size(); bit += bit % 8 == 0 ? 3 : 5) {
      ThreadBytes made = good;
      (made.*file)[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      expect_same(made, "bit " + std::to_string(bit));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CheckRanges, EveryLengthOfASmallFile) {
  const ThreadBytes good = build(5, 2);
  for (std::vector<uint8_t> ThreadBytes::* file : {&ThreadBytes::index, &ThreadBytes::detail}) {
    for (size_t length = 0; length < (good.*file).size(); ++length) {
      ThreadBytes made = good;
      (made.*file).resize(length);
      if (made.detail.empty()) continue;  // then there is none
      expect_same(made, "length " + std::to_string(length));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CheckRanges, RandomDamage) {
  const ThreadBytes good = build(150, 4);
  for (int round = 0; round < 400; ++round) {
    ThreadBytes made = good;
    for (int damage = 1 + round % 7; damage > 0; --damage) {
      std::vector<uint8_t>& file = random_() % 2 == 0 ? made.index : made.detail;
      const size_t at = random_() % file.size();
      // Whole words of zeros and ones as well: kNoDetail, other links, times far off.
      const size_t bytes = std::min<size_t>(size_t{1} << random_() % 4, file.size() - at);
      const uint8_t value = random_() % 3 == 0 ? 0xFF : static_cast<uint8_t>(random_() % 8);
      std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at), bytes, value);
    }
    expect_same(made, "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
}

// The list of findings is full within a range, and the seam is in the middle of the list.
TEST_P(CheckRanges, MoreFindingsThanAreListed) {
  ThreadBytes made = build(3000, 2);
  for (size_t record = 64 + 8; record + 8 < made.detail.size(); record += 24) {
    made.detail[record] ^= 0x40;  // links, payloads, lengths: any byte
  }
  for (size_t event = 64; event + 128 < made.index.size(); event += 32) made.index[event + 16] ^= 1;
  std::mt19937 random(1);
  const std::string whole = checked(made, kOneRange, random);
  for (const uint64_t bytes : {64, 6400, 20000, 32 * 1000, 32 * 1001, 60000}) {
    EXPECT_EQ(checked(made, bytes, random), whole) << bytes;
  }
}

// 70 types: the first 64 are counted, wherever the seams lie.
TEST_P(CheckRanges, MoreRecordTypesThanAreCounted) {
  ThreadBytes made = build(300, 1);
  Findings findings;
  const auto reader = DetailReader::open(made.detail, findings);
  ASSERT_TRUE(reader);
  for (uint64_t seq = 0; seq < reader->size(); ++seq) {
    store_le<uint16_t>(made.detail.data() + *reader->offset_of(seq) + 4,
                       static_cast<uint16_t>(500 - seq % 70));
  }
  expect_same(made, "types");
  const ThreadReport report = check_thread(3, made.index, Bytes(made.detail));
  EXPECT_EQ(report.detail.types.size(), kMaxCountedTypes);
  EXPECT_TRUE(report.detail.types.contains(500));
  EXPECT_FALSE(report.detail.types.contains(430));
}

TEST_P(CheckRanges, LinksThatGoOnWronglyAtASeam) {
  const size_t link = GetParam() == Version::kV1 ? 28 : 16;
  for (const uint32_t seq : {0u, 1u, 2u, 3u, 9u}) {
    ThreadBytes made = build(10, 1);
    for (uint32_t event = seq; event < 10; ++event) {
      store_le<uint32_t>(made.index.data() + 64 + 32 * event + link, event + 1);
    }
    expect_same(made, "from event " + std::to_string(seq));
    const ThreadReport report = check_thread(3, made.index, Bytes(made.detail));
    ASSERT_GE(report.findings.list().size(), 2u);
    EXPECT_EQ(report.findings.list()[1].sentence,
              "detail_seq values are not 0, 1, 2, ..., first at event " + std::to_string(seq));
  }
}

TEST_P(CheckRanges, WholeFileChecksumIsFoundByRanges) {
  ThreadBytes made = build(100, 3);
  const Bytes events = Bytes(made.index).subspan(64, 3200);
  const uint32_t other = GetParam() == Version::kV1 ? crc32c(events) : crc32_ieee(events);
  store_le<uint32_t>(made.index.data() + made.index.size() - 60, other);
  expect_same(made, "the other polynomial");
  store_le<uint32_t>(made.index.data() + made.index.size() - 60, 0);
  expect_same(made, "no checksum");
}

TEST(CheckRanges, GiveTheSameResultForADetailFile) {
  ThreadPlan plan;
  plan.events = 60;
  plan.detail_every = 2;
  ThreadBytes made = build_thread(plan);
  made.detail[64 + 4] = 9;
  const std::string whole = described(check_detail_alone(7, made.detail));
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{300}, uint64_t{1000}, kOneRange}) {
    ThreadCheck check(7, std::nullopt, Bytes(made.detail), bytes);
    while (const auto range = check.next()) check.add(check.look(*range));
    EXPECT_EQ(described(check.finish()), whole) << bytes;
  }
}

// More functions than are counted: in any order of the ranges, the number is the limit.
TEST(CheckRanges, FunctionsBeyondTheLimit) {
  ThreadPlan plan;
  plan.events = kMaxCountedFunctions + 5000;
  ThreadBytes made = build_thread(plan);
  for (size_t i = 0; i < plan.events; ++i) {
    store_le<uint64_t>(made.index.data() + 64 + 32 * i + 8, i);
  }
  for (const uint64_t bytes : {uint64_t{1} << 16, ThreadCheck::kRangeBytes, kOneRange}) {
    ThreadCheck check(7, Bytes(made.index), std::nullopt, bytes);
    while (const auto range = check.next()) check.add(check.look(*range));
    EXPECT_EQ(check.finish().functions, kMaxCountedFunctions) << bytes;
  }
}

}  // namespace
}  // namespace collect::atf
