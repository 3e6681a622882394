// What the commands print of a capture of any format: findings that are not listed, how far
// a long check is; and the limits of what is shown of each format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/byte_sink.h"
#include "formats/dial9/writer.h"
#include "formats/rtc/writer.h"
#include "formats/wtf/binary/writer.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;
using Octets = std::vector<uint8_t>;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr const char* kRestart = "\r\x1b[K";

// A format whose check gives what the test wants it to.
CaptureReport wanted;
std::vector<uint64_t> steps;  // that the check tells
constexpr CaptureFormat kWanted{
    "made-up",
    "made-up format",
    [](Bytes, const BytesDone& done) {
      for (const uint64_t step : steps) {
        if (done) done(step);
      }
      return wanted;
    },
    [](const DumpOptions&, const calls::Window&, Bytes, TextOut& out, const BytesDone& done) {
      out.put("an event\n");
      for (const uint64_t step : steps) {
        if (done) done(step);
      }
      return wanted.grade == CaptureGrade::kOk ? Status() : Error{Code::kDamaged, "broke off"};
    },
    nullptr,
};

class CaptureWords : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(::testing::TempDir()) / "captures_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    wanted = {};
    steps.clear();
    reference::write_file(root_ / "x", Octets{1});
  }
  void TearDown() override { fs::remove_all(root_); }

  int run_verify(const VerifyOptions& options = {}) {
    const auto trace = read::open_trace((root_ / "x").string());
    EXPECT_TRUE(trace.ok());
    out_.str("");
    err_.str("");
    return verify_capture(kWanted, options, *trace, out_, err_);
  }
  std::string inspected(const InspectOptions& options = {}) {
    const auto trace = read::open_trace((root_ / "x").string());
    EXPECT_TRUE(trace.ok());
    out_.str("");
    err_.str("");
    EXPECT_EQ(inspect_capture(kWanted, options, *trace, out_, err_), 0);
    return out_.str();
  }
  int run_dump(const DumpOptions& options = {}) {
    const auto trace = read::open_trace(path());
    EXPECT_TRUE(trace.ok());
    out_.str("");
    err_.str("");
    return dump_capture(kWanted, options, path(), trace->file(), out_, err_);
  }
  static DumpOptions with_progress() {
    DumpOptions options;
    options.progress = true;
    return options;
  }
  std::string path() const { return (root_ / "x").string(); }

  fs::path root_;
  std::ostringstream out_, err_;
};

TEST_F(CaptureWords, FindingsThatAreNotListedAreCounted) {
  wanted.grade = CaptureGrade::kDamaged;
  wanted.findings = {{Severity::kError, "one", 1, "first"},
                     {Severity::kWarning, "two", 2, "second"},
                     {Severity::kNote, "three", 3, "third"}};
  wanted.errors = 5;
  wanted.warnings = 3;
  wanted.notes = 11;
  const std::string first =
      path() + ": offset 1: first\n" + path() + ": offset 2: warning: second\n";
  EXPECT_EQ(run_verify(), 1);
  EXPECT_EQ(out_.str(), first + path() + ": 6 more findings are not listed\n");
  EXPECT_EQ(run_verify({.path = path(), .strict = true}), 1);
  EXPECT_EQ(out_.str(), first + path() + ": offset 3: note: third\n" + path() +
                            ": 16 more findings are not listed\n");
  wanted.errors = wanted.warnings = wanted.notes = 1;
  EXPECT_EQ(run_verify(), 1);
  EXPECT_EQ(out_.str(), first);
}

TEST_F(CaptureWords, WithoutAFindingTheGradeSaysWhyItFails) {
  wanted.counts = "no units";
  wanted.grade = CaptureGrade::kRecovered;
  EXPECT_EQ(run_verify(), 1);
  EXPECT_EQ(out_.str(), path() + ": recovered\n");
  EXPECT_EQ(run_verify({.path = path(), .allow_incomplete = true}), 0);
  EXPECT_EQ(out_.str(), "recovered: " + path() + ": made-up format, no units\n");
  EXPECT_EQ(run_verify({.path = path(), .strict = true, .allow_incomplete = true}), 1);
  wanted.grade = CaptureGrade::kOk;
  EXPECT_EQ(run_verify({.path = path(), .strict = true}), 0);
  wanted.notes = 1;
  EXPECT_EQ(run_verify({.path = path(), .strict = true}), 1);
  EXPECT_EQ(run_verify(), 0);
  wanted.notes = 0;
  wanted.warnings = 1;
  EXPECT_EQ(run_verify({.path = path(), .strict = true}), 1);
  EXPECT_EQ(run_verify(), 0);
  wanted.warnings = 0;
  wanted.errors = 1;
  EXPECT_EQ(run_verify(), 1);
}

TEST_F(CaptureWords, LabelsAreAsWideAsTheWidest) {
  wanted.facts = {{"a", "b"}, {"", "c"}};
  EXPECT_EQ(inspected(), path() +
                             "\n  format    made-up format\n  result    ok\n  size      1 B\n"
                             "  a         b\n            c\n");
  wanted.facts = {{"nine long", "b"}};
  wanted.warnings = 2;
  EXPECT_EQ(
      inspected(),
      path() +
          "\n  format     made-up format\n  result     ok\n  size       1 B\n"
          "  nine long  b\n  findings   0 errors, 2 warnings (collectctl verify lists them)\n");
  EXPECT_EQ(inspected({.path = path(), .json = true}),
            "{\"version\":1,\"path\":\"" + path() +
                "\",\"format\":\"made-up\",\"result\":\"ok\","
                "\"errors\":0,\"warnings\":2,\"notes\":0}\n");
  wanted.json = {{"more", 1}};
  EXPECT_THAT(inspected({.path = path(), .json = true}), EndsWith("\"notes\":0,\"more\":1}\n"));
}

// Of 25 % and 75 %: ten times a second at most, so that the second may be left out.
std::string steps_of(const std::string& doing) {
  return "(\r\x1B\\[K" + doing + " [27]5 %)+";
}
::testing::Matcher<std::string> progress(const std::string& first, const std::string& second = "") {
  return ::testing::MatchesRegex(steps_of(first) + (second.empty() ? "" : steps_of(second)) +
                                 "\r\x1B\\[K");
}

// On a terminal, of files that take a while.
TEST_F(CaptureWords, LongCheckSaysHowFarItIs) {
  for (const uint64_t size : {32 * kMiB, 32 * kMiB - 1}) {
    fs::resize_file(root_ / "x", size);
    steps = {8 * kMiB, 24 * kMiB, size};
    const bool is_long = size == 32 * kMiB;
    run_verify({.path = path(), .progress = true});
    EXPECT_THAT(err_.str(), is_long ? progress("checking") : ::testing::Matcher<std::string>(""));
    (void)inspected({.path = path(), .progress = true});
    EXPECT_THAT(err_.str(), is_long ? progress("checking") : ::testing::Matcher<std::string>(""));
    run_verify();
    EXPECT_EQ(err_.str(), "");
  }
}

TEST_F(CaptureWords, LongDumpSaysHowFarItIs) {
  wanted.grade = CaptureGrade::kOk;
  for (const uint64_t size : {32 * kMiB, 32 * kMiB - 1}) {
    fs::resize_file(root_ / "x", size);
    steps = {8 * kMiB, 24 * kMiB};
    const bool is_long = size == 32 * kMiB;
    EXPECT_EQ(run_dump(with_progress()), 0);
    EXPECT_THAT(err_.str(), is_long ? progress("printing") : ::testing::Matcher<std::string>(""));
    EXPECT_EQ(out_.str(), "an event\n");
    EXPECT_EQ(run_dump(), 0);
    EXPECT_EQ(err_.str(), "");
    // A window from the capture's start is known after a look at all of it.
    DumpOptions late = with_progress();
    late.when.from = "1s";
    EXPECT_EQ(run_dump(late), 0);
    EXPECT_THAT(err_.str(),
                is_long ? progress("checking", "printing") : ::testing::Matcher<std::string>(""));
  }
}

// What went wrong is built on a line of its own.
TEST_F(CaptureWords, DumpThatBreaksOffTakesItsLineAway) {
  wanted.grade = CaptureGrade::kDamaged;
  fs::resize_file(root_ / "x", 32 * kMiB);
  steps = {8 * kMiB};
  EXPECT_EQ(run_dump(with_progress()), 1);
  EXPECT_EQ(err_.str(), kRestart + std::string("printing 25 %") + kRestart +
                            "collectctl: " + path() + ": broke off\n");
}

TEST(SeverityNames, AreThose) {
  EXPECT_EQ(severity_name(Severity::kNote), "note");
  EXPECT_EQ(severity_name(Severity::kWarning), "warning");
  EXPECT_EQ(severity_name(Severity::kError), "error");
  EXPECT_EQ(to_text(CaptureGrade::kRejected), "rejected");
}

// ---- each format's own

std::vector<uint64_t> reports_of(const CaptureFormat& format, Bytes file) {
  std::vector<uint64_t> reports;
  (void)format.check(file, [&](uint64_t done) { reports.push_back(done); });
  return reports;
}

std::string fact_of(const CaptureFormat& format, Bytes file, std::string_view label) {
  const CaptureReport report = format.check(file, {});
  for (const auto& [name, text] : report.facts) {
    if (name == label) return text;
  }
  return "";
}

// What a dump tells that prints nothing.
std::vector<uint64_t> reports_of_dump(const CaptureFormat& format, Bytes file,
                                      const DumpOptions& options = {}) {
  std::vector<uint64_t> reports;
  std::ostringstream text;
  TextOut out(text);
  EXPECT_TRUE(
      format.dump(options, {}, file, out, [&](uint64_t done) { reports.push_back(done); }).ok());
  return reports;
}

std::string dumped(const CaptureFormat& format, Bytes file, const DumpOptions& options) {
  std::ostringstream text;
  TextOut out(text);
  // Words of numbers alone.
  const auto window = select::window_of(options.when, [] { return select::SessionTimes(); });
  EXPECT_TRUE(format.dump(options, *window, file, out, {}).ok());
  out.flush();
  return text.str();
}

// Every 16 MiB at a Unit's end, and at the file's.
TEST(RtcCaptureWords, CheckTellsHowFarItIs) {
  VectorSink sink;
  auto writer = rtc::Writer::create(sink);
  ASSERT_TRUE(writer.ok());
  const auto id = writer->open_stream({});
  ASSERT_TRUE(id.ok());
  const Octets part(kMiB, 7);
  while (writer->position() < 34 * kMiB) ASSERT_TRUE(writer->write(*id, part).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_THAT(reports_of(kRtcCapture, sink.bytes()),
              ElementsAre(16 * kMiB, 32 * kMiB, sink.bytes().size()));
  const auto reports = reports_of_dump(kRtcCapture, sink.bytes());
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_THAT(reports, ElementsAre(AllOf(Ge(16 * kMiB), Lt(18 * kMiB)),
                                   AllOf(Ge(32 * kMiB), Lt(34 * kMiB))));
}

TEST(WtfCaptureWords, DumpTellsHowFarItIs) {
  VectorSink sink;
  wtf::Writer writer(sink);
  ASSERT_TRUE(writer.begin(wtf::FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(*writer.create_zone("zone")).ok());
  const std::string text = "\"" + std::string(kMiB, 'x') + "\"";
  for (int i = 0; i < 34; ++i) ASSERT_TRUE(writer.mark(1000, "mark", text).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_THAT(
      reports_of_dump(kWtfCapture, sink.bytes()),
      ElementsAre(AllOf(Ge(16 * kMiB), Lt(18 * kMiB)), AllOf(Ge(32 * kMiB), Lt(35 * kMiB))));
}

// Read in parts, which frames cross; one of them is larger than a part.
TEST(Dial9CaptureWords, DumpTellsHowFarItIs) {
  dial9::Encoder encoder;
  const auto type = *encoder.define({256, "Blob", true, {{"bytes", dial9::FieldType::kBytes}}});
  const auto blob = [&](uint64_t bytes) {
    encoder.begin_event(type, 1'000'000'000);
    encoder.put_bytes(Octets(bytes, 7));
    EXPECT_TRUE(encoder.end_event());
  };
  for (int i = 0; i < 17; ++i) blob(kMiB);
  blob(40 * kMiB);
  for (int i = 0; i < 17; ++i) blob(kMiB);
  const Octets stream = encoder.take();
  const std::string all = dumped(kDial9Capture, stream, {});
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 35);
  const auto reports = reports_of_dump(kDial9Capture, stream);
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_THAT(reports, ElementsAre(AllOf(Ge(17 * kMiB), Lt(18 * kMiB)),
                                   AllOf(Ge(57 * kMiB), Lt(58 * kMiB))));
}

Octets wtf_with_timebase(double ms) {
  VectorSink sink;
  wtf::Writer writer(sink);
  wtf::FileHeader header;
  header.timebase_ms = ms;
  EXPECT_TRUE(writer.begin(header).ok());
  EXPECT_TRUE(writer.finish().ok());
  return sink.bytes();
}

TEST(WtfCaptureWords, ShowsTimebases1990To2200AsTimeOfDay) {
  const auto text = [](double ms) {
    return fact_of(kWtfCapture, wtf_with_timebase(ms), "timebase");
  };
  EXPECT_EQ(text(631'152'000'000), "1990-01-01 00:00:00.000 UTC (631152000000 ms)");
  EXPECT_EQ(text(631'151'999'999), "631151999999 ms");
  EXPECT_EQ(text(7'258'118'400'000), "2200-01-01 00:00:00.000 UTC (7258118400000 ms)");
  EXPECT_EQ(text(7'258'118'400'001), "7258118400001 ms");
  EXPECT_EQ(text(-1), "-1 ms");
  const Octets file = wtf_with_timebase(0);
  EXPECT_EQ(reports_of(kWtfCapture, file).back(), file.size());
}

// 100 sentences, and how many more: of values that are no JSON any more.
TEST(WtfCaptureWords, RecoverSaysHowManyMoreThereAre) {
  const auto missing_of = [](size_t values) {
    VectorSink sink;
    wtf::Writer writer(sink);
    EXPECT_TRUE(writer.begin(wtf::FileHeader{}).ok());
    EXPECT_TRUE(writer.set_zone(*writer.create_zone("zone")).ok());
    for (size_t i = 0; i < values; ++i) {
      EXPECT_TRUE(writer.mark(1000, "mark", "[[" + std::to_string(i) + "]]").ok());
    }
    EXPECT_TRUE(writer.finish().ok());
    Octets bytes = sink.bytes();
    const std::string_view needle = "[[";
    for (auto at = bytes.begin();
         (at = std::search(at, bytes.end(), needle.begin(), needle.end())) != bytes.end(); ++at) {
      *at = ']';
    }
    VectorSink whole;
    const auto missing = kWtfCapture.recover(bytes, whole, {});
    EXPECT_TRUE(missing.ok());
    return *missing;
  };
  EXPECT_THAT(missing_of(100), SizeIs(100));
  EXPECT_THAT(missing_of(100).back(), HasSubstr("JSON"));
  EXPECT_THAT(missing_of(101), SizeIs(101));
  EXPECT_EQ(missing_of(101).back(), "1 more like these");
  EXPECT_EQ(missing_of(1102).back(), "1002 more like these");
}

// The leave of the call that is one too many has no name; the others have theirs.
TEST(WtfCaptureWords, LimitOfOpenScopesThatHaveTheirNames) {
  constexpr size_t kMost = size_t{1} << 22;
  VectorSink sink;
  wtf::Writer writer(sink, {.pair_scopes = false});
  ASSERT_TRUE(writer.begin(wtf::FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(*writer.create_zone("deep")).ok());
  const uint32_t type = *writer.define_scope("f");
  for (size_t i = 0; i <= kMost; ++i) ASSERT_TRUE(writer.enter(type, 1000).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer.leave(3000).ok());
  ASSERT_TRUE(writer.finish().ok());
  const std::string indent(64, ' ');
  DumpOptions late;
  late.when.from = "3000";
  EXPECT_EQ(dumped(kWtfCapture, sink.bytes(), late),
            "# zone 0, \"deep\", \"native_script\"\n"
            "           3             | " +
                indent +
                "}\n"
                "           3           2 | " +
                indent + "} f\n");
}

TEST(WtfCaptureWords, ScopesAreIndentedUpToALimit) {
  VectorSink sink;
  wtf::Writer writer(sink);
  ASSERT_TRUE(writer.begin(wtf::FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(*writer.create_zone("deep")).ok());
  for (uint64_t i = 0; i < 34; ++i) {
    ASSERT_TRUE(writer.enter_named("f", 1000 * (i + 1)).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
  DumpOptions deep;
  deep.when.from = "32000";  // 31 around it
  deep.limit = 3;
  EXPECT_EQ(dumped(kWtfCapture, sink.bytes(), deep),
            "# zone 0, \"deep\", \"native_script\"\n"
            "          32             | " +
                std::string(62, ' ') +
                "f() {\n"
                "          33             | " +
                std::string(64, ' ') +
                "f() {\n"
                "          34             | " +
                std::string(64, ' ') + "f() {\n");
}

}  // namespace
}  // namespace collect::ctl
