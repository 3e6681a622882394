// Codec 2 of WIRE.md "Page codecs".
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "proto/wire/page_codec.h"
#include "tests/proto/wire/documented_bytes.h"
#include "tests/proto/wire/page_records.h"

namespace collect::wire {
namespace {

ByteVector encoded(const ByteVector& records) {
  const auto encoder = std::make_unique<TupleEncoder>();
  ByteVector out(records.size() + 64);
  out.resize(encoder->encode(static_cast<uint32_t>(records.size() / 32), records, out));
  return out;
}

PageCodecError decoded(const ByteVector& sent, ByteVector& records) {
  return decode_tuples(static_cast<uint32_t>(records.size() / 32), sent, records);
}

// `count` calls of functions and at times of the test's choice.
ByteVector calls(uint32_t count, const std::function<uint64_t(uint32_t)>& function,
                 const std::function<uint64_t(uint32_t)>& time) {
  ByteVector records(size_t{count} * 32);
  for (uint32_t i = 0; i < count; ++i) {
    store_le(records.data() + size_t{i} * 32, time(i));
    store_le(records.data() + size_t{i} * 32 + 8, function(i));
    store_le(records.data() + size_t{i} * 32 + 16, UINT64_MAX);
    records[size_t{i} * 32 + 24] = 1;
  }
  return records;
}

void expect_comes_back(const ByteVector& records) {
  const ByteVector sent = encoded(records);
  ASSERT_FALSE(sent.empty());
  ASSERT_LT(sent.size(), records.size());
  ByteVector out(records.size());
  ASSERT_EQ(decoded(sent, out), PageCodecError::kNone);
  EXPECT_EQ(out, records);
}

TEST(TupleCodec, ReadsAndWritesTheDocumentsExample) {
  const ByteVector columns = documented_bytes("Columns");  // has the records
  ASSERT_GE(columns.size(), 128u);
  const ByteVector records(columns.begin(), columns.begin() + 128);
  const ByteVector sent = documented_bytes("Tuples");
  ASSERT_EQ(sent.size(), 50u);
  ByteVector out(128);
  ASSERT_EQ(decoded(sent, out), PageCodecError::kNone);
  EXPECT_EQ(out, records);
  EXPECT_EQ(encoded(records), sent);
}

TEST(TupleCodec, EveryCountOfRecordsComesBack) {
  for (uint32_t count = 4; count <= 2048; count += count < 300 ? 1 : 61) {
    expect_comes_back(calls(
        count, [](uint32_t i) { return uint64_t{1} << 32 | i * i % 97; },
        [](uint32_t i) { return 1000 + 30ull * i + i % 7; }));
    if (HasFatalFailure()) FAIL() << count;
  }
}

TEST(TupleCodec, BothVersionsComeBack) {
  for (const int version : {1, 2}) expect_comes_back(index_records(600, version, 3));
}

TEST(TupleCodec, OneTupleNeedsNoBitsAndOneTimeNone) {
  const auto same = [](uint32_t) { return uint64_t{7}; };
  const ByteVector records = calls(300, same, same);
  expect_comes_back(records);
  EXPECT_EQ(encoded(records).size(), 38u + 3u) << "the widths of three blocks";
}

TEST(TupleCodec, TakesTheMostTuplesButNotOneMore) {
  const auto time = [](uint32_t i) { return uint64_t{i}; };
  expect_comes_back(calls(2048, [](uint32_t i) { return i % kMaxTuples; }, time));
  EXPECT_TRUE(encoded(calls(2048, [](uint32_t i) { return i % (kMaxTuples + 1); }, time)).empty());
}

TEST(TupleCodec, TakesTheLargestTimeStepButNoLarger) {
  const auto apart = [](uint64_t step) {
    return calls(64, [](uint32_t i) { return i % 4; }, [step](uint32_t i) { return i * step; });
  };
  expect_comes_back(apart((uint64_t{1} << (kMaxTupleBits - 2)) - 1));
  EXPECT_TRUE(encoded(apart(uint64_t{1} << (kMaxTupleBits - 2))).empty());
  // A time that goes back is a difference of nearly 2^64.
  EXPECT_TRUE(
      encoded(calls(64, [](uint32_t) { return 1; }, [](uint32_t i) { return 1000 - i; })).empty());
}

TEST(TupleCodec, DoesNotEncodeInvalidOrIncompressiblePages) {
  std::mt19937_64 random(1);
  ByteVector noise(64 * 32);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  EXPECT_TRUE(encoded(noise).empty());
  EXPECT_TRUE(encoded({}).empty());
  const auto encoder = std::make_unique<TupleEncoder>();
  const ByteVector records = index_records(64, 2, 1);
  ByteVector out(records.size());
  EXPECT_EQ(encoder->encode(63, records, out), 0u);
  EXPECT_EQ(encoder->encode(65, records, out), 0u);
  const ByteVector large = index_records(2049, 2, 1);
  ByteVector large_out(large.size());
  EXPECT_EQ(encoder->encode(2049, large, large_out), 0u);
}

TEST(TupleCodec, NoRoomIsNoPage) {
  const auto encoder = std::make_unique<TupleEncoder>();
  const ByteVector records =
      calls(400, [](uint32_t i) { return i % 50; }, [](uint32_t i) { return 20ull * i; });
  const size_t wanted = encoded(records).size();
  for (size_t room = 0; room < wanted; ++room) {
    const GuardedBytes out{ByteVector(room)};
    EXPECT_EQ(encoder->encode(400, records, out.bytes()), 0u) << room;
  }
}

TEST(TupleCodec, StaysWithinTheRecords) {
  const auto encoder = std::make_unique<TupleEncoder>();
  for (uint32_t count = 16; count < 300; ++count) {
    const ByteVector records =
        calls(count, [](uint32_t i) { return i % 5; }, [](uint32_t i) { return 9ull * i; });
    const GuardedBytes from(records);
    const ByteVector expected = encoded(records);
    ASSERT_FALSE(expected.empty());
    ByteVector out(records.size());
    ASSERT_EQ(encoder->encode(count, from.bytes(), out), expected.size());
    const GuardedBytes sent(expected);
    const GuardedBytes back{ByteVector(records.size())};
    ASSERT_EQ(decode_tuples(count, sent.bytes(), back.bytes()), PageCodecError::kNone);
    EXPECT_TRUE(std::ranges::equal(back.bytes(), records));
  }
}

TEST(TupleCodec, EveryPrefixAndEveryChangedByteIsHandled) {
  const ByteVector records = index_records(300, 2, 5);
  const ByteVector good =
      encoded(calls(300, [](uint32_t i) { return i % 9; }, [](uint32_t i) { return 40ull * i; }));
  ASSERT_FALSE(good.empty());
  ByteVector out(records.size());
  for (size_t size = 0; size < good.size(); ++size) {
    const GuardedBytes prefix(
        ByteVector(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    EXPECT_EQ(decode_tuples(300, prefix.bytes(), out), PageCodecError::kBlock) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x55, 0x80, 0xFF}) {
      ByteVector changed = good;
      changed[at] = static_cast<uint8_t>(changed[at] ^ change);
      const GuardedBytes sent(changed);
      (void)decode_tuples(300, sent.bytes(), out);  // other records, or none
    }
  }
  ByteVector longer = good;
  longer.push_back(0);
  EXPECT_EQ(decoded(longer, out), PageCodecError::kBlock);
}

TEST(TupleCodec, LimitsPlusOneAreRefused) {
  const ByteVector good = documented_bytes("Tuples");
  ByteVector out(128);
  const auto refused = [&](size_t at, uint8_t value) {
    ByteVector changed = good;
    changed[at] = value;
    return decoded(changed, out) == PageCodecError::kBlock;
  };
  EXPECT_TRUE(refused(0, 0)) << "no tuple";
  EXPECT_TRUE(refused(0, 3)) << "a place beyond the table, and a byte too much";
  EXPECT_TRUE(refused(1, 4)) << "more tuples than there are bytes";
  EXPECT_TRUE(refused(37, 1)) << "a bit of the mask beyond the tuple";
  EXPECT_TRUE(refused(44, kMaxTupleBits - 1)) << "58 bits of a record";
  ByteVector tuples(38 + (kMaxTuples + 1) + 1 + 2 * 32);
  store_le<uint16_t>(tuples.data(), kMaxTuples + 1);
  EXPECT_EQ(decoded(tuples, out), PageCodecError::kBlock);

  // A table of three has places of two bits, of which one means nothing.
  ByteVector place(38 + 3 + 1);
  place[0] = 3;
  place.push_back(0b00'10'01'00);
  ASSERT_EQ(decoded(place, out), PageCodecError::kBlock) << "the mask is empty";
  place.erase(place.begin() + 38, place.begin() + 41);
  ASSERT_EQ(decoded(place, out), PageCodecError::kNone);
  place.back() = 0b11'10'01'00;
  EXPECT_EQ(decoded(place, out), PageCodecError::kBlock);
}

TEST(TupleCodec, CallersBufferIsTheLimit) {
  const ByteVector records = index_records(64, 2, 1);
  const ByteVector sent = encoded(records);
  ByteVector out(records.size());
  EXPECT_EQ(decode_tuples(65, sent, out), PageCodecError::kRecords);
  EXPECT_EQ(decode_tuples(63, sent, out), PageCodecError::kRecords);
  EXPECT_EQ(decode_tuples(0, sent, {}), PageCodecError::kRecords);
  out.push_back(0);
  EXPECT_EQ(decode_tuples(64, sent, out), PageCodecError::kRecords);
}

TEST(TupleCodec, PagesAreDecodedByTheirCodec) {
  const ByteVector records = index_records(64, 2, 1);
  PageHeader header;
  header.record_count = 64;
  header.codec = Codec::kTuples;
  ByteVector out(records.size()), scratch(records.size());
  EXPECT_EQ(decode_page(header, encoded(records), scratch, out), PageCodecError::kNone);
  EXPECT_EQ(out, records);
  header.lane = Lane::kDetail;
  EXPECT_EQ(decode_page(header, encoded(records), scratch, out), PageCodecError::kRecords);
}

}  // namespace
}  // namespace collect::wire
