// read(write(x)) == x for random content, with our reader and with independent ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "formats/rtc/check.h"
#include "tests/formats/rtc/random_container.h"
#include "tests/formats/rtc/reference_files.h"

namespace collect::rtc {
namespace {

using nlohmann::json;
using testing::ExpectedObject;
using testing::Made;
using testing::make_random;
using testing::Plan;
namespace fs = std::filesystem;

struct Sizes {
  uint64_t unit, minor;
};
constexpr Sizes kSizes[] = {{2048, 2048},   {4096, 2048},      {4096, 4096},  {8192, 2048},
                            {8192, 8192},   {16384, 2048},     {16384, 4096}, {65536, 8192},
                            {65536, 65536}, {1 << 20, 1 << 17}};

bool is_clock(const std::string& name) {
  return name == "clk" || name == "clk delta" || name == "cycles";
}

void expect_objects(Bytes file, const std::vector<ExpectedObject>& expected) {
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  size_t next = 0;
  for (Object object; reader->next(object);) {
    if (object.stream->is_clock) continue;
    ASSERT_LT(next, expected.size());
    const ExpectedObject& want = expected[next];
    ASSERT_EQ(object.stream->name, want.stream) << next;
    ASSERT_EQ(object.time_ns, want.time_ns) << next << " of " << want.stream;
    const Bytes payload = object.payload();
    ASSERT_EQ(std::vector<uint8_t>(payload.begin(), payload.end()), want.data) << next;
    ASSERT_EQ(object.size, want.data.size());
    ASSERT_FALSE(object.possibly_incomplete || object.time_uncertain);
    ++next;
  }
  EXPECT_EQ(next, expected.size());
}

// Objects that were still open at the end are dropped, and said to be; nothing else is wrong.
void expect_clean(Bytes file, const Plan& plan, uint64_t units) {
  const auto summary = check_file(file);
  ASSERT_TRUE(summary.ok());
  for (const Finding& finding : summary->findings.list()) {
    EXPECT_TRUE(finding.rule == Rule::kObjectDropped ||
                (!plan.finish && finding.rule == Rule::kCrcMissing))
        << rule_name(finding.rule) << " at " << finding.offset << ": " << finding.sentence;
  }
  EXPECT_EQ(summary->units.size(), units);
  EXPECT_EQ(summary->geometry.unit_bytes, plan.options.geometry.unit_bytes);
  EXPECT_EQ(summary->geometry.minor_bytes, plan.options.geometry.minor_bytes);
  const CrcState good =
      plan.options.checksum == Checksum::kIeee ? CrcState::kIeee : CrcState::kPublished;
  EXPECT_EQ(summary->units_with(good), units - (plan.finish ? 0 : 1));
  for (size_t k = 0; k < summary->units.size(); ++k) {
    EXPECT_EQ(summary->units[k].offset, k * plan.options.geometry.unit_bytes);
    EXPECT_EQ(summary->units[k].count, k);
  }
}

Plan plan_of(uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  const Sizes sizes = kSizes[seed % std::size(kSizes)];
  plan.options.geometry = {sizes.unit, sizes.minor};
  plan.options.special = seed % 3 == 0 ? SpecialFrames::kPrefixed : SpecialFrames::kFixed;
  plan.options.checksum = seed % 7 == 0 ? Checksum::kPublished : Checksum::kIeee;
  plan.options.repeat_clocks = seed % 5 != 0;
  plan.finish = seed % 4 != 0;
  plan.max_object_bytes = seed % 2 == 0 ? 3000 : 40000;
  plan.operations = 300 + seed % 100 * 3;
  return plan;
}

TEST(RtcRoundTrip, RandomContentComesBack) {
  for (uint64_t seed = 1; seed <= 160; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = plan_of(seed);
    const Made made = make_random(plan);
    ASSERT_NO_FATAL_FAILURE(expect_objects(made.file, made.objects));
    ASSERT_NO_FATAL_FAILURE(expect_clean(made.file, plan, made.units));
    if (HasFailure()) return;
  }
}

TEST(RtcRoundTrip, FragmentsAreThePayload) {
  const Made made = make_random(plan_of(8));
  auto reader = Reader::open(made.file);
  ASSERT_TRUE(reader.ok());
  uint64_t many = 0;
  for (Object object; reader->next(object);) {
    std::vector<uint8_t> joined;
    for (const Bytes part : object.fragments()) {
      EXPECT_FALSE(part.empty());
      EXPECT_LE(part.size(), kMaxPayloadBytes);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    many += object.fragments().size() > 1;
    const Bytes payload = object.payload();
    EXPECT_EQ(joined, std::vector<uint8_t>(payload.begin(), payload.end()));
  }
  EXPECT_GT(many, 5u);
}

class IndependentReader : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
    path_ = fs::path(::testing::TempDir()) / ("rtc_written_" + std::to_string(getpid()) + ".rtc");
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  // What each reader prints.
  std::vector<testing::Ran> read(const std::vector<uint8_t>& file, const std::string& what) {
    testing::write_file(path_, file);
    std::vector<testing::Ran> all;
    for (testing::PythonTool& reader : readers_) all.push_back(reader.run({path_.string(), what}));
    EXPECT_GE(all.size(), 1u);
    return all;
  }

  fs::path path_;
  reference::PythonTools readers_ =
      reference::python_tools(testing::independent_programs("check_rtc.py", "rtc_oracle.py"));
};

std::string hex(const std::vector<uint8_t>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void expect_printed(const std::string& out, const std::vector<ExpectedObject>& objects) {
  size_t next = 0;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    const json object = json::parse(out.substr(at, end - at), nullptr, false);
    at = end + 1;
    ASSERT_FALSE(object.is_discarded());
    if (is_clock(object["stream"])) continue;
    ASSERT_LT(next, objects.size());
    const ExpectedObject& want = objects[next++];
    ASSERT_EQ(object["stream"], want.stream);
    ASSERT_EQ(object["time_ns"], want.time_ns ? json(*want.time_ns) : json()) << next;
    ASSERT_EQ(object["data"], hex(want.data)) << next;
  }
  EXPECT_EQ(next, objects.size());
}

TEST_F(IndependentReader, FindsEveryObject) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Made made = make_random(plan_of(seed));
    for (const auto& [status, out] : read(made.file, "--objects")) {
      EXPECT_EQ(status, 0);
      ASSERT_NO_FATAL_FAILURE(expect_printed(out, made.objects));
    }
  }
}

TEST_F(IndependentReader, AgreesOnUnitsAndChecksums) {
  for (const uint64_t seed : {2u, 7u, 21u, 33u}) {
    Plan plan = plan_of(seed);
    plan.finish = true;
    const Made made = make_random(plan);
    const auto ours = check_file(made.file);
    ASSERT_TRUE(ours.ok());
    for (const testing::Ran& ran : read(made.file, "--summary")) {
      const json summary = json::parse(ran.out, nullptr, false);
      ASSERT_FALSE(summary.is_discarded());
      EXPECT_EQ(ran.status, 0);
      EXPECT_EQ(summary["units"], made.units);
      EXPECT_EQ(summary["Unit"], plan.options.geometry.unit_bytes);
      EXPECT_EQ(summary["unit"], plan.options.geometry.minor_bytes);
      EXPECT_EQ(summary["special_frames"], to_text(plan.options.special));
      EXPECT_EQ(summary["crc"], json({{to_text(plan.options.checksum), made.units}}));
      EXPECT_EQ(summary["tail_bytes"], 0);
      EXPECT_EQ(summary["frames"], ours->frames);
      EXPECT_EQ(summary["objects"], ours->objects);
    }
  }
}

}  // namespace
}  // namespace collect::rtc
