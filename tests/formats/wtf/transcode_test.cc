#include "formats/wtf/transcode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> copy_of(const std::vector<uint8_t>& bytes, Findings& findings) {
  auto reader = Reader::open(bytes, findings);
  EXPECT_TRUE(reader.ok());
  VectorSink sink;
  Writer writer(sink, kFaithfulCopy);
  const Status status = transcode(**reader, writer, findings);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return sink.bytes();
}

TEST(Transcode, KeepsEveryEvent) {
  for (uint32_t seed = 1; seed < 10; ++seed) {
    const auto made = testing::random_file(seed, 500, 3000);
    Findings findings;
    const auto copy = copy_of(made.bytes, findings);
    EXPECT_EQ(testing::lines_of(copy, findings), made.lines);
    EXPECT_TRUE(findings.list().empty());
  }
}

// A legacy file and the same events in format 10, which another program wrote.
void expect_becomes_the_other(const fs::path& folder, const std::string& name) {
  const auto legacy = testing::file_bytes(folder / (name + ".legacy.wtf-trace"));
  const auto other = testing::file_bytes(folder / (name + ".v10.wtf-trace"));
  std::ifstream in(folder / (name + ".legacy.expected.json"));
  const nlohmann::json counts = nlohmann::json::parse(in, nullptr, false);
  ASSERT_FALSE(counts.is_discarded());
  Findings findings;
  const auto copy = copy_of(legacy, findings);
  const auto lines = testing::lines_of(copy, findings);
  const auto expected = testing::lines_of(other, findings);
  ASSERT_EQ(lines.size(), counts["events"]);
  ASSERT_EQ(expected.size(), lines.size());
  // The other program wrote `any` values with spaces of its own.
  const auto without_spaces = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != expected[i]) {
      ASSERT_EQ(without_spaces(lines[i]), without_spaces(expected[i])) << i;
    }
  }
  EXPECT_EQ(findings.errors() + findings.warnings(), 0u);
  const FileReport report = check_file(copy);
  EXPECT_TRUE(report.viewer_loads);
  EXPECT_EQ(report.header->timebase_ms, counts["timebase"].get<double>());
  EXPECT_EQ(report.zones[0].frames, counts["zones"][0]["frames"]);
}

TEST(Transcode, LegacySampleBecomesTheOther) {
  expect_becomes_the_other(testing::golden_folder() / "data/wtf", "small");
}

TEST(Transcode, LegacyRecordingBecomesTheOther) {
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) GTEST_SKIP() << testing::kNoPack;
  expect_becomes_the_other(reference / "data/wtf", "blk-client");
}

std::string renamed(const Findings& findings) {
  for (const Finding& finding : findings.list()) {
    if (finding.rule == Rule::kRenamed) return finding.sentence;
  }
  return {};
}

// Builtin events with arguments of other names and types, one of them with other flags too.
std::vector<uint8_t> file_with_foreign_builtins() {
  VectorSink sink;
  Writer writer(sink, kFaithfulCopy);
  EXPECT_TRUE(writer.begin(FileHeader{}).ok());
  EXPECT_TRUE(writer.set_zone(*writer.create_zone("main")).ok());
  const uint32_t flow =
      *writer.define(kClassInstance, kFlagBuiltin | kFlagInternal, "wtf.flow#branch",
                     "uint32 flowId, uint32 parentFlowId, ascii name, any value");
  const uint32_t mark =
      *writer.define(kClassInstance, kFlagBuiltin, "wtf.trace#mark", "utf8 label");
  const uint32_t leave =
      *writer.define(kClassInstance, kFlagBuiltin, "wtf.scope#leave", "uint32 reason");
  const uint32_t zone_set = *writer.define(kClassInstance, 0, "wtf.zone#SET", "uint16 zoneId");
  const uint32_t work = *writer.define_scope("work");
  EXPECT_TRUE(writer.enter(work, 1000).ok());
  EXPECT_TRUE(writer.event(flow, 2000, {7, 3, "request", nullptr}).ok());
  EXPECT_TRUE(writer.event(mark, 3000, {"here"}).ok());
  EXPECT_TRUE(writer.event(zone_set, 3500, {9}).ok());
  EXPECT_TRUE(writer.event(leave, 4000, {1}).ok());
  EXPECT_TRUE(writer.finish().ok());
  return sink.bytes();
}

TEST(Transcode, BuiltinEventsStayAsTheFileDefinesThem) {
  const auto file = file_with_foreign_builtins();
  Findings before, findings;
  const auto copy = copy_of(file, findings);
  EXPECT_EQ(testing::lines_of(copy, findings), testing::lines_of(file, before));
  EXPECT_FALSE(findings.has(Rule::kRenamed));
  auto reader = Reader::open(copy, findings);
  ASSERT_TRUE(reader.ok());
  for (Event event; (*reader)->next(event);) {
  }
  const EventType* const flow = (*reader)->types().find_name("wtf.flow#branch");
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(flow->signature, "uint32 flowId, uint32 parentFlowId, ascii name, any value");
  EXPECT_EQ(flow->flags, kFlagBuiltin | kFlagInternal);
  const EventType* const mark = (*reader)->types().find_name("wtf.trace#mark");
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(mark->signature, "utf8 label");
  // The scope is left by the event that the file has for it.
  const FileReport report = check_file(copy);
  EXPECT_EQ(report.zones[0].scopes, 1u);
  EXPECT_EQ(report.zones[0].open_scopes, 0u);
}

// Names that the writer needs for its own events are the only ones that must change, and it is
// said.
TEST(Transcode, NumbersAnUnflaggedZoneEventAndReportsIt) {
  auto file = file_with_foreign_builtins();
  const std::string from = "wtf.zone#SET", to = "wtf.zone#set";
  const auto place = std::search(file.begin(), file.end(), from.begin(), from.end());
  ASSERT_NE(place, file.end());
  std::copy(to.begin(), to.end(), place);
  Findings before;
  const auto lines = testing::lines_of(file, before);
  ASSERT_TRUE(before.has(Rule::kZoneBuiltin));
  Findings findings;
  const auto copy = copy_of(file, findings);
  EXPECT_EQ(
      renamed(findings),
      "event type 'wtf.zone#set' becomes 'wtf.zone#set (2)(uint16 zoneId)': the format cannot "
      "hold its names");
  EXPECT_EQ(testing::lines_of(copy, findings).size(), lines.size());
}

// 80 bytes of each name are shown.
TEST(Transcode, LongNamesAreShownInPart) {
  const std::string name(99, 'n'), argument(99, 'a');
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(*writer.create_zone("main")).ok());
  ASSERT_TRUE(writer.define_instance(name + "1", "uint8 x").ok());
  const uint32_t second = *writer.define_instance(name + "2", "uint32 " + argument);
  ASSERT_TRUE(writer.event(second, 1000, {1}).ok());
  ASSERT_TRUE(writer.finish().ok());
  auto file = sink.bytes();
  const std::string from = name + "2";
  const auto place = std::search(file.begin(), file.end(), from.begin(), from.end());
  ASSERT_NE(place, file.end());
  *(place + 99) = '1';
  Findings findings;
  const auto copy = copy_of(file, findings);
  EXPECT_EQ(renamed(findings), "event type '" + std::string(80, 'n') + "' becomes '" +
                                   std::string(80, 'n') + "(uint32 " + std::string(73, 'a') +
                                   ")': the format cannot hold its names");
}

TEST(Transcode, CopiesUnusedTypesAndZones) {
  VectorSink sink;
  Writer writer(sink);
  const std::string header =
      R"({"type":"file_header","flags":[],"timebase":1.5,"contextInfo":{"contextType":"script",)"
      R"("uri":"u","args":["a"],"unknown":[1]},"metadata":{"k":"v"},"more":true})";
  ASSERT_TRUE(writer.begin_with(header).ok());
  const uint16_t used = *writer.create_zone("used"), unused = *writer.create_zone("unused");
  ASSERT_TRUE(writer.define_instance("never", "uint32 n").ok());
  const uint32_t seen = *writer.define_instance("seen");
  ASSERT_TRUE(writer.define_scope("never either").ok());
  ASSERT_TRUE(writer.set_zone(used).ok());
  ASSERT_TRUE(writer.event(seen, 1000, {}).ok());
  ASSERT_TRUE(writer.delete_zone(unused, 2000).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  const auto copy = copy_of(sink.bytes(), findings);
  auto reader = Reader::open(copy, findings);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->header_text(), header);
  uint64_t deleted = 0;
  for (Event event; (*reader)->next_any(event);) {
    if (event.type->role != Role::kZoneDelete) continue;
    ++deleted;
    EXPECT_EQ((*reader)
                  ->zones()[*(*reader)->zone_of_id(
                      static_cast<uint32_t>(event.argument("zoneId")->integer()))]
                  .name,
              "unused");
  }
  EXPECT_EQ(deleted, 1u);
  EXPECT_EQ((*reader)->zones().size(), 2u);
  EXPECT_NE((*reader)->types().find_name("never"), nullptr);
  EXPECT_NE((*reader)->types().find_name("never either"), nullptr);
  EXPECT_TRUE(findings.list().empty());
}

TEST(Rewrite, KeepsASoundFileAndMendsADamagedOne) {
  const auto whole = testing::random_file(3, 500, 3000).bytes;
  VectorSink same;
  Findings findings;
  uint64_t done = 0;
  const auto events = rewrite(whole, same, findings, [&](uint64_t bytes) { done = bytes; });
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(done, whole.size());
  EXPECT_EQ(*events, check_file(whole).events);
  EXPECT_EQ(same.bytes(), whole);
  const std::vector<uint8_t> cut(whole.begin(), whole.end() - 2000);
  VectorSink mended;
  const auto left = rewrite(cut, mended, findings, [&](uint64_t bytes) { done = bytes; });
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(findings.has(Rule::kTruncated));
  EXPECT_EQ(done, cut.size());
  const FileReport report = check_file(mended.bytes());
  EXPECT_TRUE(report.viewer_loads);
  EXPECT_EQ(report.grade, Grade::kOk);
  EXPECT_EQ(report.events, *left);
  Findings again;
  EXPECT_EQ(testing::lines_of(mended.bytes(), again), testing::lines_of(cut, again));
  EXPECT_EQ(rewrite({}, mended, findings).code(), Code::kTruncated);
}

TEST(Transcode, ResourcesStayWithTheirEvents) {
  Findings findings;
  const auto copy = copy_of(testing::build_file(200), findings);
  const FileReport report = check_file(copy);
  EXPECT_EQ(report.resources, 2u);
  EXPECT_EQ(report.grade, Grade::kOk);
}

}  // namespace
}  // namespace collect::wtf
