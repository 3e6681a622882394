// What copy_objects() leaves of a container: everything that a reader shows of it, with any part
// cut off or damaged.
#include "formats/rtc/copy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "formats/rtc/check.h"
#include "formats/rtc/meta/value.h"
#include "formats/rtc/read/reader.h"
#include "tests/formats/rtc/frame_bytes.h"
#include "tests/formats/rtc/random_container.h"
#include "tests/formats/rtc/reference_files.h"

namespace collect::rtc {
namespace {

using nlohmann::json;
using testing::make_random;
using testing::Plan;
namespace fs = std::filesystem;

Result<Copied> copy_one(Bytes file, ByteSink& out) {
  return copy_objects({&file, 1}, out);
}

struct Shown {
  std::string stream;
  std::vector<uint8_t> data;
  std::optional<int64_t> time_ns;

  bool operator==(const Shown&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Shown& shown) {
  out << shown.stream << " @ " << (shown.time_ns ? std::to_string(*shown.time_ns) : "-") << ":";
  for (size_t i = 0; i < std::min<size_t>(shown.data.size(), 24); ++i) out << " " << +shown.data[i];
  return out << " (" << shown.data.size() << " bytes)";
}

// Writers repeat their clocks behind each index: the same value and time again are shown once.
std::vector<Shown> without_repeats(const std::vector<Shown>& all,
                                   const std::map<std::string, bool>& clocks) {
  std::vector<Shown> list;
  std::map<std::string, Shown> last;
  for (const Shown& one : all) {
    if (clocks.contains(one.stream)) {
      const auto known = last.find(one.stream);
      if (known != last.end() && known->second == one) continue;
      last[one.stream] = one;
    }
    list.push_back(one);
  }
  return list;
}

std::vector<Shown> shown(Bytes file) {
  std::vector<Shown> all;
  std::map<std::string, bool> clocks;
  auto reader = Reader::open(file);
  if (!reader.ok()) return all;
  Object object;
  while (reader->next(object)) {
    const Bytes payload = object.payload();
    if (object.stream->is_clock) clocks[object.stream->label()] = true;
    all.push_back({object.stream->label(), {payload.begin(), payload.end()}, object.time_ns});
  }
  return without_repeats(all, clocks);
}

// Copies, and expects of the copy what a reader shows of the input, and a whole container.
std::vector<uint8_t> expect_whole_copy(Bytes file, const std::string& what) {
  const std::vector<Shown> before = shown(file);
  VectorSink sink;
  const auto copied = copy_one(file, sink);
  if (!copied.ok()) {
    EXPECT_FALSE(Reader::open(file).ok()) << what << ": " << copied.error().message;
    return {};
  }
  const std::vector<Shown> after = shown(sink.bytes());
  const auto [there, here] =
      std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  if (there != before.end()) ADD_FAILURE() << what << ": missing " << *there;
  if (here != after.end()) ADD_FAILURE() << what << ": added " << *here;
  const auto checked = check_file(sink.bytes());
  EXPECT_TRUE(checked.ok()) << what;
  if (checked.ok()) {
    EXPECT_EQ(checked->findings.errors(), 0u)
        << what << ": " << checked->findings.list().front().sentence;
    EXPECT_EQ(checked->head_bytes + checked->tail_bytes + checked->skipped_bytes, 0u) << what;
  }
  EXPECT_EQ(copied->refused, 0u) << what;
  return sink.bytes();
}

// Cut at both ends, at places that fall everywhere within frames and Units.
void cut_everywhere(Bytes file, size_t cuts, const std::string& name) {
  const size_t step = file.size() / cuts + 1;
  for (size_t at = 0; at < file.size() && !::testing::Test::HasFailure(); at += step) {
    (void)expect_whole_copy(file.subspan(at), name + " from " + std::to_string(at));
    (void)expect_whole_copy(file.first(at), name + " up to " + std::to_string(at));
  }
}

TEST(CopyTest, KeepsAllThatIsShownOfACutSample) {
  for (const fs::path& path : testing::files_with(testing::sample_folders("data/rtc"), ".rtc")) {
    const std::vector<uint8_t> file = testing::file_bytes(path);
    cut_everywhere(file, file.size() > 500'000 ? 12 : 150, path.filename().string());
  }
}

TEST(CopyTest, KeepsAllShownOfOurOwnCutContainer) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Plan plan;
    plan.seed = seed;
    plan.options.geometry = {16384, 4096};
    plan.finish = seed % 3 != 0;
    plan.options.repeat_clocks = seed % 4 != 0;
    cut_everywhere(make_random(plan).file, 120, "seed " + std::to_string(seed));
  }
}

TEST(CopyTest, KeepsAllThatIsShownOfADamagedOne) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Plan plan;
    plan.seed = seed;
    plan.options.geometry = {8192, 2048};
    std::vector<uint8_t> file = make_random(plan).file;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 3; ++i) {
      const size_t at = random() % file.size();
      const size_t bytes = std::min<size_t>(random() % 3000, file.size() - at);
      if (i == 0) {
        file.erase(file.begin() + static_cast<std::ptrdiff_t>(at),
                   file.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      } else {
        for (size_t k = at; k < at + std::min<size_t>(bytes, 40); ++k) file[k] ^= uint8_t(random());
      }
    }
    (void)expect_whole_copy(file, "seed " + std::to_string(seed));
  }
}

// ---- the cases, one by one

class CopyCase : public ::testing::Test {
 protected:
  CopyCase() : CopyCase(WriterOptions()) {}
  explicit CopyCase(const WriterOptions& options)
      : writer_(Writer::create(sink_, options).value()) {}
  uint64_t open(const std::string& json_text) {
    const json value = json::parse(json_text);
    StreamInfo info;
    info.name = value.value("name", "");
    info.format = Format::parse(value.value("format", "raw"));
    if (value.contains("length")) info.length = value["length"].get<uint32_t>();
    if (value.contains("clock") && value["clock"].is_boolean()) info.is_clock = true;
    if (value.contains("clock") && value["clock"].is_string()) info.clock = value["clock"];
    info.delta = value.value("delta", "");
    return writer_.open_stream(info).value();
  }
  void put(uint64_t id, std::string_view bytes, bool more = false) {
    ASSERT_TRUE(writer_.write(id, testing::bytes_of(bytes), more).ok());
  }
  std::vector<uint8_t> file() {
    EXPECT_TRUE(writer_.finish().ok());
    return sink_.bytes();
  }

  VectorSink sink_;
  Writer writer_;
};

TEST_F(CopyCase, StreamThatComesBeforeItsClockKeepsItsObjects) {
  const uint64_t clock = open(R"({"name":"clk","format":"uint8","clock":true})");
  const uint64_t text = open(R"({"name":"text","format":"utf-8","clock":"clk"})");
  put(text, "before");
  put(clock, "\x07");
  put(text, "behind");
  const auto copy = expect_whole_copy(file(), "the text comes first");
  const auto objects = shown(copy);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0], (Shown{"text", {'b', 'e', 'f', 'o', 'r', 'e'}, {}}));
  EXPECT_EQ(objects[2], (Shown{"text", {'b', 'e', 'h', 'i', 'n', 'd'}, 7'000'000'000}));
}

TEST_F(CopyCase, ObjectKeepsTheTimeOfItsFirstFrame) {
  const uint64_t clock = open(R"({"name":"clk","format":"uint8","clock":true})");
  const uint64_t text = open(R"({"name":"text","clock":"clk"})");
  put(clock, "\x01");
  put(text, "long ", true);
  put(clock, "\x02");
  put(text, "object");
  const auto objects = shown(expect_whole_copy(file(), "a clock ticks within an object"));
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[2].time_ns, 1'000'000'000);
}

TEST_F(CopyCase, CopyKeepsARepeatedClockValue) {
  const uint64_t clock = open(R"({"name":"clk","format":"uint8","clock":true})");
  const uint64_t text = open(R"({"name":"text","clock":"clk"})");
  for (int i = 0; i < 5; ++i) {
    put(clock, "\x09");
    put(text, "x");
  }
  VectorSink sink;
  ASSERT_TRUE(copy_one(file(), sink).ok());
  const auto summary = check_file(sink.bytes());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->objects, 10u);
}

TEST_F(CopyCase, DeltaOnAnotherBaseIsAnotherTime) {
  const uint64_t base = open(R"({"name":"base","format":"uint8","clock":true})");
  const uint64_t delta = open(R"({"name":"d","format":"uint8","clock":true,"delta":"base"})");
  const uint64_t text = open(R"({"name":"text","clock":"d"})");
  for (const char* at : {"\x0a", "\x14"}) {
    put(base, at);
    put(delta, "\x01");
    put(text, "x");
  }
  const auto objects = shown(expect_whole_copy(file(), "a delta"));
  ASSERT_EQ(objects.size(), 6u);
  EXPECT_EQ(objects[5].time_ns, 21'000'000'000);
}

class CopyOfBadClocks : public CopyCase {
 protected:
  static WriterOptions options() {
    WriterOptions options;
    options.keep_bad_clock_values = true;
    return options;
  }
  CopyOfBadClocks() : CopyCase(options()) {}
};

TEST_F(CopyOfBadClocks, KeepsBadValuesWithoutATime) {
  const uint64_t clock = open(R"({"name":"clk","format":"uint16le","clock":true})");
  const uint64_t text = open(R"({"name":"text","clock":"clk"})");
  put(clock, std::string_view("\x01\x00", 2));
  put(text, "one");
  put(clock, "\x02");
  put(text, "two");
  put(clock, "");
  put(clock, std::string(3000, 'x'));
  put(text, "three");
  put(clock, std::string_view("\x04\x00", 2));
  put(text, "four");
  const auto objects = shown(expect_whole_copy(file(), "bad values"));
  ASSERT_EQ(objects.size(), 9u);
  EXPECT_EQ(objects[1].time_ns, 1'000'000'000);
  EXPECT_EQ(objects[2].data.size(), 1u);
  EXPECT_EQ(objects[3].time_ns, std::nullopt);
  EXPECT_EQ(objects[5].data.size(), 3000u);
  EXPECT_EQ(objects[6].time_ns, std::nullopt);
  EXPECT_EQ(objects[8].time_ns, 4'000'000'000);
}

class CopyOfBigEndian : public CopyCase {
 protected:
  static WriterOptions options() {
    WriterOptions options;
    options.endian = Endian::kBig;
    return options;
  }
  CopyOfBigEndian() : CopyCase(options()) {}
};

TEST_F(CopyOfBigEndian, KeepsTheOrderOfItsNumbers) {
  const uint64_t clock = open(R"({"name":"clk","format":"uint32","clock":true})");
  const uint64_t text = open(R"({"name":"text","clock":"clk"})");
  put(clock, std::string_view("\0\0\0\x05", 4));
  put(text, "five");
  const auto objects = shown(expect_whole_copy(file(), "big-endian"));
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[1].time_ns, 5'000'000'000);
}

TEST_F(CopyCase, StreamsWithoutObjectsAndStreamsWithoutNamesAreThere) {
  (void)open(R"({"name":"never","format":"utf-8"})");
  const uint64_t nameless = open(R"({"format":"utf-8"})");
  put(nameless, "hello");
  VectorSink sink;
  ASSERT_TRUE(copy_one(file(), sink).ok());
  auto reader = Reader::open(sink.bytes());
  ASSERT_TRUE(reader.ok());
  Object object;
  ASSERT_TRUE(reader->next(object));
  const auto streams = reader->streams();
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0]->name, "never");
  EXPECT_EQ(streams[1]->name, "id 10");
}

TEST_F(CopyCase, CountsMissingObjects) {
  const uint64_t text = open(R"({"name":"text"})");
  put(text, std::string(4000, 'a'));
  put(text, std::string(4000, 'b'), true);
  EXPECT_TRUE(writer_.flush().ok());
  std::vector<uint8_t> cut = sink_.bytes();
  cut.resize(cut.size() - 10);
  VectorSink sink;
  const auto copied = copy_one(cut, sink);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->objects, 1u);
  EXPECT_EQ(copied->dropped, 1u);
  EXPECT_GT(copied->tail_bytes, 0u);
  const auto counts = missing_counts(*copied);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[1].second, "objects whose end is missing");
}

// A description that changes begins the stream again: its first value is no repetition, even of
// bytes that are no value of it.
TEST(CopyTest, StreamDescribedAgainRepeatsNothing) {
  testing::FrameBytes made;
  const uint8_t bad[1] = {7};
  const auto meta = [](const char* gain) {
    return R"([{"id":9,"name":"clk","clock":true,"format":"uint16","gain":)" + std::string(gain) +
           "},10]";
  };
  made.head(0, meta("1")).frame(9, bad).close_unit();
  made.head(1, meta("2")).frame(9, bad).close_unit();
  made.head(2, meta("2")).frame(9, bad).crc();
  VectorSink sink;
  const auto copied = copy_one(made.bytes, sink);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->objects, 2u);  // the third repeats the second
  EXPECT_EQ(copied->streams, 2u);
}

// What refers to a stream that cannot be a clock in the copy has no time there, and is kept.
TEST(CopyTest, ClockThatCannotBeDescribedIsAStream) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"clk","clock":true,"format":"utf-8"},)"
               R"({"id":10,"name":"text","clock":"clk"},)"
               R"({"id":11,"name":"wide","clock":true,"format":"uint16","length":4},12])");
  made.text(10, "before").text(9, "noon").text(10, "behind");
  made.text(11, "four", false).crc();
  VectorSink sink;
  const auto copied = copy_one(made.bytes, sink);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->refused, 0u);
  std::vector<std::string> streams;
  for (const Shown& one : shown(sink.bytes())) {
    EXPECT_FALSE(one.time_ns) << one;
    streams.push_back(one.stream);
  }
  EXPECT_EQ(streams.size(), 4u);
  const auto said = [&](const char* what) {
    return std::find(copied->changes.begin(), copied->changes.end(), what) != copied->changes.end();
  };
  EXPECT_TRUE(said("stream clk: a clock cannot be described so"));
  EXPECT_TRUE(said("stream wide: a clock cannot be described so"));
  EXPECT_TRUE(said("stream text: there is no clock \"clk\""));
}

// Frames of another length than their stream had when the object began can't be a part of it.
TEST(CopyTest, ObjectThatItsDescriptionLeavesIsRefusedOnce) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"a","length":4},{"id":10,"name":"b"},11])");
  const Bytes four = testing::bytes_of("four");
  made.frame(9, four, true, false).text(kMetaDeltaId, R"([{"id":9,"name":"a"},11])");
  made.text(9, "seven..", true).text(9, "more", true).text(9, "end").text(10, "other");
  made.text(9, "next").crc();
  VectorSink sink;
  const auto copied = copy_one(made.bytes, sink);
  ASSERT_TRUE(copied.ok());
  const auto summary = check_file(sink.bytes());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->findings.errors(), 0u);
  std::vector<std::string> texts;
  for (const Shown& one : shown(sink.bytes())) texts.emplace_back(one.data.begin(), one.data.end());
  EXPECT_EQ(texts, (std::vector<std::string>{"other", "next"}));
  EXPECT_EQ(copied->refused, 1u);
  ASSERT_FALSE(copied->changes.empty());
  EXPECT_EQ(copied->changes[0], "stream a: a: 7 bytes are no multiple of its length");
}

TEST(CopyTest, CountsTheChangesThatItDoesNotList) {
  testing::FrameBytes made;
  made.geometry = {uint64_t{1} << 20, uint64_t{1} << 20};
  std::string meta = "[";
  for (size_t id = 9; id < 9 + kMaxCopySentences + 5; ++id)
    meta += R"({"id":)" + std::to_string(id) + R"(,"clock":"gone"},)";
  meta += "5000]";
  made.head(0, "[9]");
  for (size_t at = 0; at < meta.size(); at += kMaxPayloadBytes) {
    made.text(kMetaId, meta.substr(at, kMaxPayloadBytes), meta.size() - at > kMaxPayloadBytes);
  }
  made.text(9, "x").crc();
  VectorSink sink;
  const auto copied = copy_one(made.bytes, sink);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->changes.size(), kMaxCopySentences);
  EXPECT_EQ(copied->changes_left_out, 5u);
  EXPECT_EQ(copied->objects, 1u);
}

TEST(CopyTest, SaysHowManyBytesAreDone) {
  testing::FrameBytes made;
  made.head(0, R"([{"id":9,"name":"a"},10])").text(9, "x").close_unit();
  made.head(1, R"([{"id":9,"name":"a"},10])").text(9, "y").close_unit();
  const Bytes files[] = {made.bytes, made.bytes};
  std::vector<uint64_t> done;
  VectorSink sink;
  ASSERT_TRUE(copy_objects(files, sink, [&](uint64_t bytes) { done.push_back(bytes); }).ok());
  // Two Units of 8192 bytes in each file, half of each in the first reading, half in the second.
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 4096, 8192, 12288, 16384, 20480, 24576, 28672}));
}

// ---- the independent readers' word on it

class CopyAndIndependentReader : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
    path_ = fs::path(::testing::TempDir()) / ("rtc_copied_" + std::to_string(getpid()) + ".rtc");
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  // What a reader finds in a file that has a Marker.
  std::vector<Shown> found_by(testing::PythonTool& reader_program,
                              const std::vector<uint8_t>& file) {
    testing::write_file(path_, file);
    const auto [status, out] = reader_program.run({path_.string(), "--objects"});
    EXPECT_TRUE(status == 0 || status == 3) << status;  // 3: it has problems, as cut files have
    std::vector<Shown> all;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line);
      Shown one{object["stream"], {}, {}};
      if (!object["time_ns"].is_null()) one.time_ns = object["time_ns"].get<int64_t>();
      const std::string hex = object["data"];
      for (size_t i = 0; i < hex.size(); i += 2) {
        one.data.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
      }
      all.push_back(std::move(one));
    }
    std::map<std::string, bool> clocks;
    auto reader = Reader::open(file);
    while (reader.ok()) {
      Frame frame;
      if (!reader->next_frame(frame)) break;
      if (frame.stream != nullptr && frame.stream->is_clock) clocks[frame.stream->label()] = true;
    }
    return without_repeats(all, clocks);
  }

  void compare_cuts(const fs::path& path);

  fs::path path_;
  reference::PythonTools readers_ =
      reference::python_tools(testing::independent_programs("check_rtc.py", "rtc_oracle.py"));
};

void CopyAndIndependentReader::compare_cuts(const fs::path& path) {
  const std::string name = path.filename();
  const auto file = testing::file_bytes(path);
  ASSERT_FALSE(file.empty());
  for (const size_t part : {1, 4}) {
    const auto at = static_cast<std::ptrdiff_t>(file.size() * part / 7);
    for (const auto& cut : {std::vector<uint8_t>(file.begin() + at, file.end()),
                            std::vector<uint8_t>(file.begin(), file.end() - at)}) {
      const auto copy = expect_whole_copy(cut, name);
      for (testing::PythonTool& reader : readers_) {
        const auto before = found_by(reader, cut);
        const auto after = found_by(reader, copy);
        EXPECT_FALSE(before.empty());
        const auto [there, here] =
            std::mismatch(before.begin(), before.end(), after.begin(), after.end());
        if (there != before.end()) ADD_FAILURE() << name << ": missing " << *there;
        if (here != after.end()) ADD_FAILURE() << name << ": added " << *here;
      }
    }
  }
}

TEST_F(CopyAndIndependentReader, FindsTheSameInCopyAndCutFile) {
  for (const char* name : {"mk_ieee_fixed", "mk_ieee_prefixed", "mk_big_endian", "mk_bigmeta"}) {
    compare_cuts(testing::golden_folder() / "data/rtc" / (std::string(name) + ".rtc"));
  }
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) return;
  for (const char* name : {"up_small_late", "mk_ieee_fixed", "fixed_writer_bigmeta"}) {
    compare_cuts(reference / "data" / "rtc" / (std::string(name) + ".rtc"));
  }
}

}  // namespace
}  // namespace collect::rtc
