// Files of ours before readers that were not written from this code: the tree's and the pack's, and
// the published viewer's library (npm package tracing-framework, found by NODE_PATH) through its
// driver in the pack.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/transcode.h"
#include "formats/wtf/zone_tally.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class WrittenFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  }
  std::string tool(const char* name) const {
    return "'" + (reference_ / "tools" / name).string() + "'";
  }
  fs::path save(const std::string& name, const std::vector<uint8_t>& bytes) {
    testing::write_file(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  // The driver's exit code 2: no node, or no package.
  static bool viewer_missing(const testing::Ran& ran) {
    return ran.status == 2 || ran.status == 127;
  }
  testing::Ran view(const fs::path& file, const std::string& option) const {
    return testing::run("node " + tool("wtf_oracle.js") + " '" + file.string() + "' " + option +
                        " 2>/dev/null");
  }

  fs::path reference_ = testing::reference_folder();
  testing::Folder folder_{"written"};
  reference::PythonTools readers_ =
      reference::python_tools(testing::independent_programs("read_wtf.py", "wtf_dump.py"));
};

class BeforeTheViewer : public WrittenFiles {
 protected:
  void SetUp() override {
    WrittenFiles::SetUp();
    if (reference_.empty()) GTEST_SKIP() << testing::kNoPack;
  }
};

// Lone surrogates, which JavaScript prints as escapes, as U+FFFD.
json parse_seen(std::string text) {
  for (size_t at = 0; (at = text.find("\\ud", at)) != std::string::npos; ++at) {
    if (text[at + 3] >= '8') text.replace(at, 6, "\\ufffd");
  }
  return json::parse(text, nullptr, false);
}

// Each event of each zone: time, name, depth, and the arguments of those that keep theirs.
void compare_with_viewer(const std::vector<uint8_t>& bytes, const json& seen) {
  ASSERT_TRUE(seen["ok"].get<bool>()) << seen.dump(1).substr(0, 500);
  Findings findings;
  auto reader = Reader::open(bytes, findings);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(seen["timebase"].get<double>(), (*reader)->header()->timebase_ms);
  std::map<uint32_t, size_t> next, depth;
  for (Event event; (*reader)->next(event);) {
    const json& zone = seen["zones"][event.zone];
    const json& there = zone["events"][next[event.zone]++];
    ASSERT_EQ(there["n"], listed_name(event));
    ASSERT_DOUBLE_EQ(there["t"].get<double>(), event.time_us / 1000.0);
    size_t& level = depth[event.zone];
    ASSERT_EQ(there["d"], level);
    const int step = scope_step(*event.type);
    if (step > 0) ++level;
    if (step < 0) --level;
    const Role role = event.type->role;
    if (role == Role::kScopeEnter || role == Role::kTimeStamp || role == Role::kScopeAppendData)
      continue;
    Value value;
    for (Arguments walk = event.arguments(); walk.next(value);) {
      if (role == Role::kRangeBegin || role == Role::kRangeEnd) break;  // the viewer renumbers ids
      const json& argument = there["a"][value.argument->name];
      SCOPED_TRACE(value.argument->name);
      if (!value.present()) {
        ASSERT_TRUE(argument.is_null());
      } else if (value.argument->type == ArgType::kAny) {
        ASSERT_EQ(argument, json::parse(value.text, nullptr, false));
      } else if (value.is_text()) {
        ASSERT_EQ(argument, value.utf8());
      } else if (value.argument->type == ArgType::kChar ||
                 value.argument->type == ArgType::kWchar) {
        ASSERT_EQ(argument, value.utf8());
      } else if (value.argument->type == ArgType::kTime32) {
        ASSERT_DOUBLE_EQ(argument.get<double>(), static_cast<double>(value.integer()) / 1000.0);
      } else if (value.argument->type != ArgType::kFloat32 && !value.argument->array &&
                 value.argument->type != ArgType::kBool && argument.is_number()) {
        ASSERT_EQ(argument, value.integer());
      } else if (value.argument->array && argument.is_array()) {
        ASSERT_EQ(argument.size(), value.count);
        for (size_t i = 0; i < value.count; ++i) {
          if (value.argument->type == ArgType::kFloat32) break;
          ASSERT_EQ(argument[i], value.element(i));
        }
      }
    }
  }
  ASSERT_EQ(seen["zones"].size(), (*reader)->zones().size());
  for (size_t i = 0; i < seen["zones"].size(); ++i) {
    EXPECT_EQ(seen["zones"][i]["count"], next[static_cast<uint32_t>(i)]);
    EXPECT_EQ(seen["zones"][i]["name"], *(*reader)->zones()[i].name);
  }
}

TEST_F(BeforeTheViewer, ViewerSeesEveryEventOfEveryZone) {
  std::map<std::string, std::vector<uint8_t>> files;
  files["built"] = testing::build_file();
  files["small_chunks"] = testing::build_file(100);
  for (uint32_t seed = 100; seed < 112; ++seed) {
    files["random" + std::to_string(seed)] = testing::random_file(seed, 600, 5000).bytes;
  }
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    const fs::path path = save(name + ".wtf-trace", bytes);
    const testing::Ran ran = view(path, "--events");
    if (viewer_missing(ran)) GTEST_SKIP() << "node or the package tracing-framework is not there";
    ASSERT_EQ(ran.status, 0) << ran.out.substr(0, 800);
    const json seen = parse_seen(ran.out);
    ASSERT_FALSE(seen.is_discarded());
    compare_with_viewer(bytes, seen);
  }
}

// A copy by events, as `recover` makes it of a cut file, shows the viewer what the file itself did:
// types, zones, events with their arguments, marks, frames, time ranges.
TEST_F(BeforeTheViewer, ViewerSeesTheSameInACopy) {
  std::map<std::string, std::vector<uint8_t>> files;
  files["built"] = testing::build_file(200);
  files["random"] = testing::random_file(300, 600, 5000).bytes;
  for (const char* name : {"cpp_once", "cpp_stream", "js_autosave", "tiny"}) {
    files[name] =
        testing::file_bytes(reference_ / "data" / "wtf" / (std::string(name) + ".wtf-trace"));
  }
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    Findings findings;
    auto reader = Reader::open(bytes, findings);
    ASSERT_TRUE(reader.ok());
    VectorSink copy;
    Writer writer(copy, kFaithfulCopy);
    ASSERT_TRUE(transcode(**reader, writer, findings).ok());
    EXPECT_FALSE(findings.has(Rule::kRenamed));
    const testing::Ran before = view(save("before.wtf-trace", bytes), "--events");
    if (viewer_missing(before))
      GTEST_SKIP() << "node or the package tracing-framework is not there";
    const testing::Ran after = view(save("after.wtf-trace", copy.bytes()), "--events");
    ASSERT_EQ(before.status, 0);
    ASSERT_EQ(after.status, 0) << after.out.substr(0, 800);
    json seen = parse_seen(before.out), again = parse_seen(after.out);
    const auto by_name = [](const json& a, const json& b) { return a["name"] < b["name"]; };
    for (json* one : {&seen, &again}) {
      std::sort((*one)["types"].begin(), (*one)["types"].end(), by_name);
      (*one).erase("logs");
    }
    EXPECT_EQ(again["zones"], seen["zones"]);
    for (const json& type : seen["types"]) {
      EXPECT_NE(std::find(again["types"].begin(), again["types"].end(), type), again["types"].end())
          << type;
    }
  }
}

// Flows whose builtin events are defined with another type for the ids.
TEST_F(BeforeTheViewer, ViewerFindsFlowsInACutCopy) {
  VectorSink sink;
  Writer foreign(sink, kFaithfulCopy);
  ASSERT_TRUE(foreign.begin(FileHeader{}).ok());
  ASSERT_TRUE(foreign.set_zone(*foreign.create_zone("main")).ok());
  const uint32_t branch =
      *foreign.define(kClassInstance, kFlagBuiltin | kFlagInternal, "wtf.flow#branch",
                      "uint32 id, uint32 parentFlowId, ascii name, any value");
  const uint32_t work = *foreign.define_scope("work");
  for (uint32_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(foreign.enter(work, i * 10'000).ok());
    ASSERT_TRUE(foreign.event(branch, i * 10'000 + 1000, {40 + i, 0, "request", nullptr}).ok());
    ASSERT_TRUE(foreign.leave(i * 10'000 + 2000).ok());
    ASSERT_TRUE(foreign.flush().ok());
  }
  ASSERT_TRUE(foreign.finish().ok());
  const std::vector<uint8_t> cut(sink.bytes().begin(), sink.bytes().end() - 20);
  VectorSink mended;
  Findings findings;
  ASSERT_TRUE(rewrite(cut, mended, findings).ok());
  EXPECT_TRUE(findings.has(Rule::kTruncated));
  const fs::path path = save("flows.wtf-trace", mended.bytes());
  if (viewer_missing(view(path, "--summary")))
    GTEST_SKIP() << "node or the package tracing-framework is not there";
  const std::string script =
      "var w=require('tracing-framework');console.log=console.info=function(){};w.db.load('" +
      path.string() +
      "',function(d){var l=d.getZones()[0].getEventList(),o=[];for(var i=l.begin();!i.done();"
      "i.next())if(i.isScope())o.push(i.getChildFlowId());"
      "require('fs').writeSync(1,JSON.stringify(o));})";
  const testing::Ran ran = testing::run("node -e \"" + script + "\" 2>/dev/null");
  EXPECT_EQ(ran.out.substr(0, ran.out.find(",43") + 3), "[41,42,43") << ran.out;
}

// The pack's reader and the published one say the same of our files, field by field.
TEST_F(BeforeTheViewer, BothIndependentReadersAgree) {
  const auto bytes = testing::build_file(150);
  const fs::path path = save("both.wtf-trace", bytes);
  const testing::Ran ran = view(path, "--events");
  if (viewer_missing(ran)) GTEST_SKIP() << "node or the package tracing-framework is not there";
  ASSERT_EQ(ran.status, 0) << ran.out;
  testing::write_file(folder_.path() / "seen.json", {ran.out.begin(), ran.out.end()});
  const auto compared =
      testing::run("python3 " + tool("wtf_dump.py") + " --compare '" + path.string() + "' '" +
                   (folder_.path() / "seen.json").string() + "'");
  EXPECT_EQ(compared.status, 0) << compared.out;
}

void expect_counts(const json& seen, const FileReport& report) {
  EXPECT_EQ(seen["events"], report.events);
  EXPECT_EQ(seen["event_types"], report.event_types);
  ASSERT_EQ(seen["zones"].size(), report.zones.size());
  for (size_t i = 0; i < report.zones.size(); ++i) {
    EXPECT_EQ(seen["zones"][i]["events"], report.zones[i].events);
    EXPECT_EQ(seen["zones"][i]["scopes"], report.zones[i].scopes);
    EXPECT_EQ(seen["zones"][i]["max_scope_depth"], report.zones[i].max_scope_depth);
    EXPECT_EQ(seen["zones"][i]["distinct_names"], report.zones[i].distinct_names);
  }
}

TEST_F(WrittenFiles, IndependentReadersCountTheSame) {
  for (uint32_t seed = 200; seed < 206; ++seed) {
    const auto made = testing::random_file(seed, 500, 3000);
    const fs::path path = save("counted.wtf-trace", made.bytes);
    const FileReport report = check_file(made.bytes);
    for (testing::PythonTool& reader : readers_) {
      const auto ran = reader.run({path.string(), "--summary"});
      ASSERT_EQ(ran.status, 0) << ran.out;
      expect_counts(json::parse(ran.out, nullptr, false), report);
    }
  }
}

// Time, name, depth and arguments of every event of every zone.
TEST_F(WrittenFiles, IndependentReadersSeeTheSameInACopy) {
  std::map<std::string, std::vector<uint8_t>> files;
  files["built"] = testing::build_file(200);
  files["random"] = testing::random_file(300, 600, 5000).bytes;
  for (const char* name : {"tiny", "small.v10", "small.legacy"}) {
    files[name] = testing::file_bytes(testing::golden_folder() / "data/wtf" /
                                      (std::string(name) + ".wtf-trace"));
  }
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    Findings findings;
    auto reader = Reader::open(bytes, findings);
    ASSERT_TRUE(reader.ok());
    VectorSink copy;
    Writer writer(copy, kFaithfulCopy);
    ASSERT_TRUE(transcode(**reader, writer, findings).ok());
    const fs::path before = save("before/a.wtf-trace", bytes);
    const fs::path after = save("after/a.wtf-trace", copy.bytes());
    for (testing::PythonTool& program : readers_) {
      const auto seen = program.run({before.string(), "--events"});
      const auto again = program.run({after.string(), "--events"});
      ASSERT_EQ(seen.status, 0) << seen.out.substr(0, 800);
      ASSERT_EQ(again.status, 0) << again.out.substr(0, 800);
      EXPECT_TRUE(again.out == seen.out) << name;
    }
  }
}

// The viewer loads the JSON form with base64 events, and says the same as of the binary form.
TEST_F(BeforeTheViewer, ViewerLoadsTheJsonForm) {
  const auto bytes = testing::build_file(150);
  const auto binary = view(save("form.wtf-trace", bytes), "--summary");
  if (viewer_missing(binary)) GTEST_SKIP() << "node or the package tracing-framework is not there";
  for (const JsonEvents events : {JsonEvents::kBase64, JsonEvents::kEvents}) {
    VectorSink text;
    Findings findings;
    ASSERT_TRUE(binary_to_json(bytes, {JsonMode::kComplete, events}, text, findings).ok());
    const auto ran = view(save("form.wtf-json", text.bytes()), "--summary");
    ASSERT_EQ(ran.status, 0) << ran.out;
    if (events == JsonEvents::kBase64) {
      EXPECT_EQ(json::parse(ran.out), json::parse(binary.out));
    }
  }
}

// 65,534 event types, which is as many as there are wire ids.
TEST_F(BeforeTheViewer, ViewerLoadsAsManyTypesAsThereAre) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  uint32_t last = 0;
  for (int i = 0;; ++i) {
    const auto type = writer.define_scope("function " + std::to_string(i));
    if (!type.ok()) break;
    last = *type;
    if (last == kMaxWireId - 2) break;  // leave and zone#set want theirs
  }
  ASSERT_TRUE(writer.enter(last, 5000).ok());
  ASSERT_TRUE(writer.leave(9000).ok());
  EXPECT_EQ(writer.define_scope("one more").code(), Code::kLimit);
  ASSERT_TRUE(writer.finish().ok());
  const auto ran = view(save("types.wtf-trace", sink.bytes()), "--summary");
  if (viewer_missing(ran)) GTEST_SKIP() << "node or the package tracing-framework is not there";
  ASSERT_EQ(ran.status, 0) << ran.out.substr(0, 500);
  EXPECT_EQ(json::parse(ran.out)["zones"][0]["scopes"], 1);
}

}  // namespace
}  // namespace collect::wtf
