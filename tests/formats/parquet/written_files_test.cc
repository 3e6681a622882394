// Files of ours as DuckDB reads them: every value of every column, and what their metadata says.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "formats/core/version.h"
#include "formats/parquet/writer.h"
#include "tests/formats/parquet/duckdb.h"

namespace collect::parquet {
namespace {

using nlohmann::json;

class ParquetWrittenFiles : public testing::DuckDb {};

const std::string kRows = "SELECT * FROM read_parquet($FILE)";
const std::string kChunks =
    "SELECT path_in_schema AS name, row_group_num_rows AS rows, type, stats_min_value AS low, "
    "stats_max_value AS high, stats_null_count AS nulls, encodings, compression, num_values, "
    "dictionary_page_offset IS NOT NULL AS has_dictionary, total_compressed_size AS size, "
    "total_uncompressed_size AS whole_size FROM parquet_metadata($FILE) ORDER BY row_group_id, "
    "column_id";

// As DuckDB prints them.
json printed(uint64_t value) {
  return std::to_string(value);
}
json printed(int64_t value) {
  return std::to_string(value);
}
json printed(uint32_t value) {
  return value;
}
json printed(int32_t value) {
  return value;
}
json printed(std::string_view value) {
  return value;
}
json printed(double value) {
  if (value != value) return "NaN";
  if (value == std::numeric_limits<double>::infinity()) return "Infinity";
  if (value == -std::numeric_limits<double>::infinity()) return "-Infinity";
  return value;
}

template <class T>
void expect_column(const json& rows, const char* name, const std::vector<T>& values,
                   const std::vector<uint8_t>& present = {}) {
  ASSERT_TRUE(rows.is_array()) << rows;
  ASSERT_EQ(rows.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const json wanted = present.empty() || present[i] != 0 ? printed(values[i]) : json(nullptr);
    ASSERT_EQ(rows[i][name], wanted) << name << " in row " << i;
  }
}

template <class T>
std::vector<uint8_t> one_column(const Column& column, const std::vector<T>& values,
                                const std::vector<uint8_t>& present = {},
                                WriterOptions options = {}) {
  VectorSink sink;
  auto writer = Writer::create(sink, {column}, options).value();
  EXPECT_TRUE(writer->append({ColumnValues(values, present)}).ok());
  EXPECT_TRUE(writer->finish().ok());
  return sink.bytes();
}

// Calls and returns: time, function, kind, sequence.
struct Events {
  explicit Events(size_t count) {
    std::mt19937_64 random(count);
    uint64_t now = 1'700'000'000'000'000'000;
    for (size_t i = 0; i < count; ++i) {
      time.push_back(now += random() % 500);
      function.push_back(uint64_t{3} << 32 | random() % 700);
      kind.push_back(static_cast<uint32_t>(1 + i % 2));
      sequence.push_back(i);
    }
  }
  std::vector<uint8_t> file() const {
    VectorSink sink;
    auto writer = Writer::create(sink, {{"time", Type::kUint64, Encoding::kDeltaBinaryPacked},
                                        {"function", Type::kUint64, Encoding::kRleDictionary},
                                        {"kind", Type::kUint32, Encoding::kRleDictionary},
                                        {"sequence", Type::kUint64, Encoding::kDeltaBinaryPacked}})
                      .value();
    EXPECT_TRUE(writer->append({time, function, kind, sequence}).ok());
    EXPECT_TRUE(writer->finish().ok());
    return sink.bytes();
  }
  void expect_read(const json& rows) const {
    expect_column(rows, "time", time);
    expect_column(rows, "function", function);
    expect_column(rows, "kind", kind);
    expect_column(rows, "sequence", sequence);
  }
  std::vector<uint64_t> time, function, sequence;
  std::vector<uint32_t> kind;
};

TEST_F(ParquetWrittenFiles, EveryEventOfRowGroupsOfAllSizes) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{kPageRows} + 1, size_t{kRowGroupRows},
                             size_t{kRowGroupRows} + 1}) {
    SCOPED_TRACE(count);
    const Events events(count);
    const json answers = read(events.file(), {kRows, kChunks});
    SKIP_WITHOUT_DUCKDB(answers);
    events.expect_read(answers[0]);
    const size_t row_groups = (count + kRowGroupRows - 1) / kRowGroupRows;
    ASSERT_EQ(answers[1].size(), row_groups * 4);
    if (count > kRowGroupRows) {
      EXPECT_EQ(answers[1][4]["rows"], "1");
    }
  }
}

TEST_F(ParquetWrittenFiles, MetadataOfEvents) {
  const Events events(50'000);
  const json answers =
      read(events.file(), {kChunks,
                           "SELECT name, type, repetition_type, converted_type, logical_type FROM "
                           "parquet_schema($FILE)",
                           "SELECT created_by, num_rows, num_row_groups, format_version FROM "
                           "parquet_file_metadata($FILE)"});
  SKIP_WITHOUT_DUCKDB(answers);
  const json& chunks = answers[0];
  ASSERT_EQ(chunks.size(), 4u) << chunks;
  const char* const names[] = {"time", "function", "kind", "sequence"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(chunks[i]["name"], names[i]);
    EXPECT_EQ(chunks[i]["rows"], "50000");
    EXPECT_EQ(chunks[i]["num_values"], "50000");
    EXPECT_EQ(chunks[i]["nulls"], "0");
    EXPECT_EQ(chunks[i]["compression"], "ZSTD");
    EXPECT_EQ(chunks[i]["type"], i == 2 ? "INT32" : "INT64");
    EXPECT_EQ(chunks[i]["has_dictionary"], i == 1 || i == 2);
    EXPECT_LE(std::stoul(chunks[i]["size"].get<std::string>()),
              std::stoul(chunks[i]["whole_size"].get<std::string>()));
  }
  EXPECT_EQ(chunks[0]["encodings"], "RLE, DELTA_BINARY_PACKED");
  EXPECT_EQ(chunks[1]["encodings"], "RLE, RLE_DICTIONARY, PLAIN");
  EXPECT_EQ(chunks[0]["low"], std::to_string(events.time.front()));
  EXPECT_EQ(chunks[0]["high"], std::to_string(events.time.back()));
  EXPECT_EQ(chunks[2]["low"], "1");
  EXPECT_EQ(chunks[2]["high"], "2");
  EXPECT_EQ(chunks[3]["low"], "0");
  EXPECT_EQ(chunks[3]["high"], "49999");

  const json& schema = answers[1];
  ASSERT_EQ(schema.size(), 5u) << schema;
  EXPECT_EQ(schema[1]["converted_type"], "UINT_64");
  EXPECT_EQ(schema[3]["converted_type"], "UINT_32");
  EXPECT_EQ(schema[1]["repetition_type"], "REQUIRED");
  EXPECT_NE(schema[1]["logical_type"].get<std::string>().find("bitWidth=@"), std::string::npos)
      << schema[1];
  EXPECT_EQ(answers[2][0]["created_by"], std::string("collectord version ") + kVersion);
  EXPECT_EQ(answers[2][0]["num_rows"], "50000");
  EXPECT_EQ(answers[2][0]["format_version"], "2");
}

TEST_F(ParquetWrittenFiles, KeysAndValuesOfTheFile) {
  VectorSink sink;
  auto writer = Writer::create(sink, {{"a", Type::kInt64}}).value();
  writer->add_key_value("session", "s1");
  writer->add_key_value("empty", "");
  ASSERT_TRUE(writer->finish().ok());
  const json answers = read(sink.bytes(), {"SELECT decode(key) AS key, decode(value) AS value FROM "
                                           "parquet_kv_metadata($FILE)"});
  SKIP_WITHOUT_DUCKDB(answers);
  EXPECT_EQ(answers[0],
            json({{{"key", "session"}, {"value", "s1"}}, {{"key", "empty"}, {"value", ""}}}));
}

template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           Limits::max(),
                           Limits::min(),
                           0,
                           Limits::max(),
                           1,
                           static_cast<T>(-1),
                           static_cast<T>(Limits::max() / 2),
                           0};
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) values.push_back(static_cast<T>(random() >> random() % 64));
  for (int i = 0; i < 300; ++i) values.push_back(42);
  return values;
}

TEST_F(ParquetWrittenFiles, IntegersOfAllTypesInAllEncodings) {
  const auto i32 = edges<int32_t>();
  const auto u32 = edges<uint32_t>();
  const auto i64 = edges<int64_t>();
  const auto u64 = edges<uint64_t>();
  for (const Encoding encoding :
       {Encoding::kPlain, Encoding::kDeltaBinaryPacked, Encoding::kRleDictionary}) {
    SCOPED_TRACE(static_cast<int>(encoding));
    VectorSink sink;
    auto writer = Writer::create(sink, {{"i32", Type::kInt32, encoding},
                                        {"u32", Type::kUint32, encoding},
                                        {"i64", Type::kInt64, encoding},
                                        {"u64", Type::kUint64, encoding}})
                      .value();
    ASSERT_TRUE(writer->append({i32, u32, i64, u64}).ok());
    ASSERT_TRUE(writer->finish().ok());
    const json answers =
        read(sink.bytes(), {kRows, kChunks,
                            // Filters look at the statistics first: a wrong order loses rows.
                            "SELECT count(*)::INT AS n FROM read_parquet($FILE) WHERE i64 < -1 AND "
                            "i32 < 0 OR u64 = 18446744073709551615 OR u32 > 4294967294"});
    SKIP_WITHOUT_DUCKDB(answers);
    expect_column(answers[0], "i32", i32);
    expect_column(answers[0], "u32", u32);
    expect_column(answers[0], "i64", i64);
    expect_column(answers[0], "u64", u64);
    const char* const bounds[][2] = {{"-2147483648", "2147483647"},
                                     {"0", "4294967295"},
                                     {"-9223372036854775808", "9223372036854775807"},
                                     {"0", "18446744073709551615"}};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(answers[1][i]["low"], bounds[i][0]);
      EXPECT_EQ(answers[1][i]["high"], bounds[i][1]);
    }
    size_t found = 0;
    for (size_t i = 0; i < i64.size(); ++i) {
      found += (i64[i] < -1 && i32[i] < 0) || u64[i] == ~uint64_t{0} || u32[i] == ~uint32_t{0};
    }
    EXPECT_EQ(answers[2][0]["n"], found);
  }
}

TEST_F(ParquetWrittenFiles, Doubles) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> finite = {0.0, -0.0, 1.5, -2.25, 1e300, Limits::denorm_min(), 0.1, 0.1};
  const std::vector<double> others = {Limits::infinity(), 2, -Limits::infinity(),
                                      Limits::quiet_NaN(), Limits::max()};
  for (const Encoding encoding : {Encoding::kPlain, Encoding::kRleDictionary}) {
    json answers = read(one_column({"d", Type::kDouble, encoding}, finite), {kRows, kChunks});
    SKIP_WITHOUT_DUCKDB(answers);
    expect_column(answers[0], "d", finite);
    EXPECT_EQ(answers[1][0]["type"], "DOUBLE");
    EXPECT_EQ(answers[1][0]["low"], "-2.25");
    EXPECT_EQ(answers[1][0]["high"], "1e+300");
    answers = read(one_column({"d", Type::kDouble, encoding}, others), {kRows});
    expect_column(answers[0], "d", others);
  }
}

TEST_F(ParquetWrittenFiles, StringsShortAndLong) {
  const std::string million(1'000'000, 'm');
  const std::string medium(kMaxStatisticsBytes, 'a');
  std::vector<std::string_view> values = {"", "a", "grün", "\xF0\x9F\x98\x80", "b", "a", medium};
  for (const Encoding encoding : {Encoding::kPlain, Encoding::kRleDictionary}) {
    const json answers = read(one_column({"s", Type::kString, encoding}, values), {kRows, kChunks});
    SKIP_WITHOUT_DUCKDB(answers);
    expect_column(answers[0], "s", values);
    EXPECT_EQ(answers[1][0]["low"], "");
    EXPECT_EQ(answers[1][0]["high"], "\xF0\x9F\x98\x80");
  }
  // Several pages, as each is full after one or two of these.
  for (int i = 0; i < 4; ++i) values.insert(values.end(), {million, "x"});
  for (const Encoding encoding : {Encoding::kPlain, Encoding::kRleDictionary}) {
    const json answers = read(one_column({"s", Type::kString, encoding}, values), {kRows});
    expect_column(answers[0], "s", values);
  }
  const std::vector<std::string_view> broken = {"a\xFFz"};
  const json answers = read(one_column({"s", Type::kString}, broken), {kRows});
  EXPECT_EQ(answers[0][0]["s"], "a\xEF\xBF\xBDz");
}

TEST_F(ParquetWrittenFiles, RowGroupEndsWhenItsTextIsFull) {
  const std::string piece(kMaxStringBytes, 'p');
  const std::vector<std::string_view> values(kRowGroupTextBytes / kMaxStringBytes + 1, piece);
  const json answers = read(
      one_column({"s", Type::kString}, values),
      {"SELECT count(*)::INT AS n, min(length(s))::INT AS low FROM read_parquet($FILE)", kChunks});
  SKIP_WITHOUT_DUCKDB(answers);
  EXPECT_EQ(answers[0][0]["n"], values.size());
  EXPECT_EQ(answers[0][0]["low"], kMaxStringBytes);
  ASSERT_EQ(answers[1].size(), 2u);
  EXPECT_EQ(answers[1][0]["rows"], "4");
  EXPECT_EQ(answers[1][1]["rows"], "1");
}

TEST_F(ParquetWrittenFiles, DictionaryThatIsTooLargeIsNone) {
  std::vector<uint64_t> numbers;
  std::vector<double> doubles;
  std::vector<std::string> owned;
  for (size_t i = 0; i <= kMaxDictionaryValues; ++i) {
    numbers.push_back(i * 0x9E3779B97F4A7C15u);
    doubles.push_back(static_cast<double>(i) / 3);
    owned.push_back("text " + std::to_string(i));
  }
  const std::vector<std::string_view> texts(owned.begin(), owned.end());
  const size_t count = texts.size();
  for (const bool fits : {true, false}) {
    VectorSink sink;
    auto writer = Writer::create(sink, {{"n", Type::kUint64, Encoding::kRleDictionary},
                                        {"d", Type::kDouble, Encoding::kRleDictionary},
                                        {"s", Type::kString, Encoding::kRleDictionary}})
                      .value();
    const size_t rows = fits ? count - 1 : count;
    ASSERT_TRUE(writer
                    ->append({std::span(numbers).first(rows), std::span(doubles).first(rows),
                              std::span(texts).first(rows)})
                    .ok());
    ASSERT_TRUE(writer->finish().ok());
    const json answers = read(sink.bytes(), {kRows, kChunks});
    SKIP_WITHOUT_DUCKDB(answers);
    for (const json& chunk : answers[1]) EXPECT_EQ(chunk["has_dictionary"], fits);
    EXPECT_EQ(answers[1][0]["encodings"],
              fits ? "RLE, RLE_DICTIONARY, PLAIN" : "RLE, DELTA_BINARY_PACKED");
    if (fits) continue;
    EXPECT_EQ(answers[1][1]["encodings"], "RLE, PLAIN");
    EXPECT_EQ(answers[1][2]["encodings"], "RLE, PLAIN");
    expect_column(answers[0], "n", numbers);
    expect_column(answers[0], "d", doubles);
    expect_column(answers[0], "s", texts);
  }
}

TEST_F(ParquetWrittenFiles, ConstantsAndTimesThatGoBack) {
  const std::vector<uint64_t> constant(45'000, 9);
  const std::vector<uint64_t> back = {1000, 10, 999, std::numeric_limits<uint64_t>::max(), 0, 5};
  for (const Encoding encoding :
       {Encoding::kPlain, Encoding::kDeltaBinaryPacked, Encoding::kRleDictionary}) {
    const Column column = {"t", Type::kUint64, encoding};
    json answers = read(one_column(column, constant), {kRows});
    SKIP_WITHOUT_DUCKDB(answers);
    expect_column(answers[0], "t", constant);
    answers = read(one_column(column, back), {kRows});
    expect_column(answers[0], "t", back);
  }
}

TEST_F(ParquetWrittenFiles, NullsInAllTypesAndEncodings) {
  std::vector<int64_t> numbers;
  std::vector<std::string> owned;
  std::vector<uint8_t> some, none(100, 0);
  for (int i = 0; i < 100; ++i) {
    numbers.push_back(i * 3 - 50);
    owned.push_back(std::to_string(i / 5));
    some.push_back(i % 7 == 0 || i > 60 ? 2 : 0);  // any mark but 0
  }
  const std::vector<std::string_view> texts(owned.begin(), owned.end());
  for (const std::vector<uint8_t>& present : {some, none, std::vector<uint8_t>()}) {
    for (const Encoding encoding :
         {Encoding::kPlain, Encoding::kDeltaBinaryPacked, Encoding::kRleDictionary}) {
      SCOPED_TRACE(static_cast<int>(encoding));
      const bool is_delta = encoding == Encoding::kDeltaBinaryPacked;
      VectorSink sink;
      // Pages of 5 rows, some of which have nulls only.
      auto writer =
          Writer::create(sink,
                         {{"n", Type::kInt64, encoding, true},
                          {"s", Type::kString, is_delta ? Encoding::kPlain : encoding, true}},
                         {kRowGroupRows, 5})
              .value();
      ASSERT_TRUE(writer->append({{numbers, present}, {texts, present}}).ok());
      ASSERT_TRUE(writer->finish().ok());
      const json answers = read(sink.bytes(), {kRows, kChunks});
      SKIP_WITHOUT_DUCKDB(answers);
      expect_column(answers[0], "n", numbers, present);
      expect_column(answers[0], "s", texts, present);
      const int nulls = static_cast<int>(std::count(present.begin(), present.end(), 0));
      EXPECT_EQ(answers[1][0]["nulls"], std::to_string(nulls));
      EXPECT_EQ(answers[1][1]["nulls"], std::to_string(nulls));
      EXPECT_EQ(answers[1][0]["num_values"], "100");
      EXPECT_EQ(answers[1][0]["low"].is_null(), nulls == 100);
    }
  }
}

}  // namespace
}  // namespace collect::parquet
