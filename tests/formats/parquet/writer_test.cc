// What the writer takes and refuses, and a small file byte for byte from parquet.thrift.
// written_files_test.cc has DuckDB read whole files.
#include "formats/parquet/writer.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128.h"
#include "formats/core/version.h"

namespace collect::parquet {
namespace {

using Raw = std::vector<uint8_t>;

const std::vector<uint64_t> kNone;
const std::vector<uint64_t> kOne = {7};
const std::vector<uint64_t> kTwo = {7, 8};

std::unique_ptr<Writer> open(ByteSink& sink, std::vector<Column> columns,
                             WriterOptions options = {}) {
  return Writer::create(sink, std::move(columns), options).value();
}
Code refusal(std::vector<Column> columns, WriterOptions options = {}) {
  VectorSink sink;
  const auto writer = Writer::create(sink, std::move(columns), options);
  EXPECT_FALSE(writer.ok());
  EXPECT_TRUE(sink.bytes().empty());
  return writer.code();
}

void put(Raw& to, std::string_view text) {
  to.insert(to.end(), text.begin(), text.end());
}
void put(Raw& to, std::initializer_list<int> bytes) {
  for (const int byte : bytes) to.push_back(static_cast<uint8_t>(byte));
}

TEST(ParquetWriter, FileWithoutRowsIsItsSchema) {
  VectorSink sink;
  auto writer = open(sink, {{"t", Type::kUint64}, {"s", Type::kString, Encoding::kPlain, true}});
  writer->add_key_value("k", "v\xFF");
  ASSERT_TRUE(writer->append({kNone, std::vector<std::string_view>{}}).ok());
  ASSERT_TRUE(writer->finish().ok());

  Raw footer;
  put(footer, {0x15, 4, 0x19, 0x3C});                       // version 2; schema: three elements
  put(footer, {0x48, 6});                                   // name
  put(footer, "schema");                                    //
  put(footer, {0x15, 4, 0x00});                             // two children
  put(footer, {0x15, 4, 0x25, 0, 0x18, 1, 't', 0x25, 28});  // INT64, REQUIRED, UINT_64
  put(footer, {0x4C, 0xAC, 0x13, 64, 0x12, 0, 0, 0});       // INTEGER(64, false)
  put(footer, {0x15, 12, 0x25, 2, 0x18, 1, 's', 0x25, 0});  // BYTE_ARRAY, OPTIONAL, UTF8
  put(footer, {0x4C, 0x1C, 0, 0, 0});                       // STRING
  put(footer, {0x16, 0, 0x19, 0x0C});                       // no rows, no row groups
  put(footer, {0x19, 0x1C, 0x18, 1, 'k', 0x18, 4, 'v'});    // a key and its value
  put(footer, "\xEF\xBF\xBD");                              //
  const std::string created_by = std::string("collectord version ") + kVersion;
  put(footer, {0x00, 0x18, static_cast<int>(created_by.size())});
  put(footer, created_by);
  put(footer, {0x19, 0x2C, 0x1C, 0, 0, 0x1C, 0, 0, 0});  // TypeDefinedOrder for both

  Raw wanted;
  put(wanted, "PAR1");
  wanted.insert(wanted.end(), footer.begin(), footer.end());
  put(wanted, {static_cast<int>(footer.size()), 0, 0, 0});
  put(wanted, "PAR1");
  EXPECT_EQ(sink.bytes(), wanted);
  EXPECT_EQ(writer->bytes(), wanted.size());
}

TEST(ParquetWriter, PageHasItsHeaderAndChecksum) {
  VectorSink sink;
  auto writer = open(sink, {{"t", Type::kUint32}});
  ASSERT_TRUE(writer->append({std::vector<uint32_t>{1, 0xFFFFFFFF}}).ok());
  ASSERT_TRUE(writer->finish().ok());

  const Raw values = {1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};  // too short to be compressed
  // The checksum as zigzag of a signed number of 32 bits.
  const auto crc = static_cast<int32_t>(crc32_ieee(values));
  uint32_t zigzag = static_cast<uint32_t>(crc) << 1 ^ static_cast<uint32_t>(crc >> 31);
  Raw page;
  put(page, "PAR1");
  put(page, {0x15, 6, 0x15, 16, 0x15, 16, 0x15});  // DATA_PAGE_V2, 8 bytes before and after
  for (; zigzag >= 0x80; zigzag >>= 7) page.push_back(static_cast<uint8_t>(zigzag | 0x80));
  page.push_back(static_cast<uint8_t>(zigzag));
  put(page, {0x4C, 0x15, 4, 0x15, 0, 0x15, 4, 0x15, 0});  // 2 values, no nulls, 2 rows, PLAIN
  put(page, {0x15, 0, 0x15, 0, 0x12, 0, 0});              // no levels, not compressed
  page.insert(page.end(), values.begin(), values.end());
  ASSERT_GT(sink.bytes().size(), page.size());
  EXPECT_EQ(Raw(sink.bytes().begin(), sink.bytes().begin() + static_cast<ptrdiff_t>(page.size())),
            page);
}

// What the headers of the data pages at the start of a file say.
struct SeenPage {
  uint64_t rows, nulls, level_bytes;
  bool is_compressed;
  bool operator==(const SeenPage&) const = default;
};
std::ostream& operator<<(std::ostream& out, const SeenPage& page) {
  return out << page.rows << " rows, " << page.nulls << " nulls, " << page.level_bytes
             << " bytes of levels, compressed " << page.is_compressed;
}

std::vector<SeenPage> data_pages(Bytes file) {
  std::vector<SeenPage> seen;
  file = file.subspan(kMagic.size());
  const auto byte = [&] {
    const uint8_t first = file[0];
    file = file.subspan(1);
    return first;
  };
  // An i32 that is the next field, and not negative unless no one looks at it.
  const auto number = [&] {
    EXPECT_EQ(byte(), 0x15);
    const auto read = read_uleb128(file);
    file = file.subspan(read.size);
    return read.value >> 1;
  };
  while (number() == 3) {
    number();
    const uint64_t bytes = number();
    number();
    EXPECT_EQ(byte(), 0x4C);
    SeenPage page = {};
    page.rows = number();
    page.nulls = number();
    EXPECT_EQ(number(), page.rows);
    number();
    page.level_bytes = number();
    number();
    page.is_compressed = byte() == 0x11;
    file = file.subspan(2 + bytes);
    seen.push_back(page);
  }
  return seen;
}

TEST(ParquetWriter, PagesHaveAsManyRowsAsTheOptionsSay) {
  VectorSink sink;
  auto writer = open(sink, {{"t", Type::kUint64, Encoding::kPlain, true}}, {100, 40});
  const std::vector<uint64_t> values(150, 5);
  std::vector<uint8_t> present(150, 1);
  present[10] = present[41] = present[42] = 0;
  ASSERT_TRUE(writer->append({{values, present}}).ok());
  ASSERT_TRUE(writer->finish().ok());
  // Levels: a run of 8, a group, a run of 24; a group, a run of 32; a run of 20; then the next
  // group.
  EXPECT_EQ(data_pages(sink.bytes()), (std::vector<SeenPage>{{40, 1, 6, true},
                                                             {40, 2, 4, true},
                                                             {20, 0, 2, true},
                                                             {40, 0, 2, true},
                                                             {10, 0, 2, true}}));
}

TEST(ParquetWriter, PageOfLongStringsEndsEarly) {
  const std::string half(kPageTextBytes / 2, 'x');
  const std::vector<std::string_view> values = {half, half, "a", half, half, "b"};
  VectorSink plain;
  auto writer = open(plain, {{"s", Type::kString}});
  ASSERT_TRUE(writer->append({values}).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(data_pages(plain.bytes()),
            (std::vector<SeenPage>{{2, 0, 0, true}, {3, 0, 0, true}, {1, 0, 0, false}}));
}

TEST(ParquetWriter, RefusesASchemaThatReadersWouldRefuse) {
  EXPECT_EQ(refusal({}), Code::kInvalidArgument);
  EXPECT_EQ(refusal({{"", Type::kInt64}}), Code::kInvalidArgument);
  EXPECT_EQ(refusal({{"\xFF", Type::kInt64}}), Code::kInvalidArgument);
  EXPECT_EQ(refusal({{"a", Type::kInt64}, {"a", Type::kDouble}}), Code::kInvalidArgument);
  EXPECT_EQ(refusal({{"a", Type::kInt64, Encoding::kRle}}), Code::kInvalidArgument);
  for (const Type type : {Type::kDouble, Type::kString}) {
    EXPECT_EQ(refusal({{"a", type, Encoding::kDeltaBinaryPacked}}), Code::kInvalidArgument);
  }
}

TEST(ParquetWriter, RefusesMoreColumnsThanTheLimit) {
  std::vector<Column> columns;
  for (size_t i = 0; i < kMaxColumns; ++i) columns.push_back({std::to_string(i), Type::kInt64});
  VectorSink sink;
  EXPECT_TRUE(Writer::create(sink, columns).ok());
  columns.push_back({"more", Type::kInt64});
  EXPECT_EQ(refusal(columns), Code::kLimit);
}

TEST(ParquetWriter, RefusesOptionsOutOfRange) {
  const std::vector<Column> columns = {{"a", Type::kInt64}};
  EXPECT_EQ(refusal(columns, {0, 1}), Code::kInvalidArgument);
  EXPECT_EQ(refusal(columns, {1, 0}), Code::kInvalidArgument);
  EXPECT_EQ(refusal(columns, {kMaxRowGroupRows + 1, 1}), Code::kInvalidArgument);
  VectorSink sink;
  EXPECT_TRUE(Writer::create(sink, columns, {kMaxRowGroupRows, 1}).ok());
}

TEST(ParquetWriter, RefusedBatchChangesNothing) {
  const std::vector<Column> columns = {
      {"a", Type::kUint64}, {"b", Type::kUint64, Encoding::kPlain, true}, {"c", Type::kString}};
  const std::vector<std::string_view> text = {"x"};
  const std::string long_text(kMaxStringBytes + 1, 'x');
  const std::vector<uint8_t> mark = {1};
  VectorSink with_refusals;
  auto writer = open(with_refusals, columns);
  ASSERT_TRUE(writer->append({kOne, kOne, text}).ok());
  EXPECT_EQ(writer->append({kOne, kOne}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->append({kOne, kOne, kOne}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->append({std::vector<int64_t>{1}, kOne, text}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->append({kOne, kTwo, text}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->append({{kOne, mark}, kOne, text}).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer->append({kTwo, {kTwo, mark}, std::vector<std::string_view>{"x", "y"}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(writer->append({kOne, kOne, std::vector<std::string_view>{long_text}}).code(),
            Code::kLimit);
  EXPECT_TRUE(writer->status().ok());
  EXPECT_EQ(writer->rows(), 1u);
  ASSERT_TRUE(writer->append({kOne, {kOne, mark}, text}).ok());
  ASSERT_TRUE(writer->finish().ok());

  VectorSink without;
  auto other = open(without, columns);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(other->append({kOne, kOne, text}).ok());
  ASSERT_TRUE(other->finish().ok());
  EXPECT_EQ(with_refusals.bytes(), without.bytes());
}

TEST(ParquetWriter, BatchesDoNotShowInTheFile) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 1000; ++i) values.push_back(i * i);
  VectorSink whole, single;
  auto first = open(whole, {{"a", Type::kUint64, Encoding::kDeltaBinaryPacked}}, {300, 70});
  auto second = open(single, {{"a", Type::kUint64, Encoding::kDeltaBinaryPacked}}, {300, 70});
  ASSERT_TRUE(first->append({values}).ok());
  EXPECT_EQ(first->rows(), 1000u);
  for (const uint64_t value : values) {
    ASSERT_TRUE(second->append({std::vector<uint64_t>{value}}).ok());
  }
  ASSERT_TRUE(first->finish().ok());
  ASSERT_TRUE(second->finish().ok());
  EXPECT_EQ(whole.bytes(), single.bytes());
}

TEST(ParquetWriter, FullRowGroupIsWrittenAtOnce) {
  VectorSink sink;
  auto writer = open(sink, {{"a", Type::kUint64}}, {2, 1});
  ASSERT_TRUE(writer->append({kOne}).ok());
  EXPECT_TRUE(sink.bytes().empty());
  ASSERT_TRUE(writer->append({kOne}).ok());
  EXPECT_EQ(sink.bytes().size(), writer->bytes());
  EXPECT_GT(sink.bytes().size(), 16u);
}

TEST(ParquetWriter, RejectsRowsAfterTheEnd) {
  VectorSink sink;
  auto writer = open(sink, {{"a", Type::kUint64}});
  ASSERT_TRUE(writer->append({kOne}).ok());
  ASSERT_TRUE(writer->finish().ok());
  const Raw file = sink.bytes();
  EXPECT_EQ(writer->append({kOne}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(writer->finish().ok());
  EXPECT_EQ(sink.bytes(), file);
}

// Takes `room` bytes, then is full, and counts how often it said so.
class FullSink final : public ByteSink {
 public:
  explicit FullSink(size_t room) : room_(room) {}
  Status write(Bytes bytes) override {
    if (bytes.size() > room_) {
      ++refusals;
      room_ = 0;
      return Error{Code::kNoSpace, "full"};
    }
    room_ -= bytes.size();
    return {};
  }
  int refusals = 0;

 private:
  size_t room_;
};

TEST(ParquetWriter, EveryLaterCallReportsAFullSink) {
  const std::vector<Column> columns = {{"a", Type::kUint64, Encoding::kRleDictionary},
                                       {"b", Type::kUint64, Encoding::kDeltaBinaryPacked}};
  VectorSink sink;
  auto whole = open(sink, columns, {2, 1});
  ASSERT_TRUE(whole->append({kTwo, kTwo}).ok());
  ASSERT_TRUE(whole->finish().ok());
  for (size_t room = 0; room < sink.bytes().size(); ++room) {
    FullSink full(room);
    auto writer = open(full, columns, {2, 1});
    const Status appended = writer->append({kTwo, kTwo});
    if (!appended.ok()) {
      EXPECT_EQ(appended.code(), Code::kNoSpace);
    }
    EXPECT_EQ(writer->finish().code(), Code::kNoSpace) << room;
    EXPECT_EQ(writer->finish().code(), Code::kNoSpace);
    EXPECT_EQ(writer->append({kTwo, kTwo}).code(), Code::kNoSpace);
    EXPECT_EQ(writer->status().code(), Code::kNoSpace);
    EXPECT_EQ(full.refusals, 1);
  }
}

}  // namespace
}  // namespace collect::parquet
