// Sessions that are planned, built, converted to WTF-trace and read back, for the tests of both
// directions. The published viewer's library (npm package tracing-framework, found by NODE_PATH) is
// asked through the driver of the reference pack, where both are there.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/ctl/convert/convert_command.h"
#include "formats/wtf/check.h"
#include "storage/convert/session_builder.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_manifest.h"
#include "tests/child/child_process.h"
#include "tests/formats/atf/reference_files.h"
#include "tests/left_out.h"

namespace collect::ctl::testing {

namespace fs = std::filesystem;
using atf::EventKind;
using nlohmann::json;

inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr uint64_t kStart = 500 * kSecond + 123'456'789;  // of the device clock
inline constexpr uint64_t kUnix = 1'700'000'000 * kSecond + 987'654'321;

struct Step {
  uint64_t ns = 0;  // in the device clock
  EventKind kind{};
  std::string name;

  bool operator==(const Step&) const = default;
};
struct PlannedThread {
  uint32_t tid = 0;
  std::string name;
  std::vector<Step> steps;
};
using Plan = std::vector<PlannedThread>;

// To whole microseconds, which is what a WTF-trace keeps.
inline std::vector<Step> in_us(std::vector<Step> steps) {
  for (Step& step : steps) step.ns = step.ns / 1000 * 1000;
  return steps;
}

class WtfSessions : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(::testing::TempDir()) / "convert_wtf_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string at(const std::string& name) const { return (root_ / name).string(); }

  static convert::BuiltProcess process() {
    convert::BuiltProcess process;
    process.name = "app";
    process.executable = "/opt/app";
    process.pid = 42;
    process.start_ns = kStart;
    process.start_unix_ns = kUnix;
    process.arch = atf::Arch::kX86_64;
    process.os = atf::Os::kLinux;
    process.clock = atf::ClockType::kBoottime;
    return process;
  }
  // `also` adds markers and losses before the session is sealed.
  std::string build(const Plan& plan,
                    const std::function<void(convert::SessionBuilder&)>& also = {},
                    const convert::BuiltProcess& process = WtfSessions::process()) {
    convert::SessionBuilder builder(storage::PosixFs(at("built")), atf::Version::kV2);
    EXPECT_TRUE(builder.begin(process).ok());
    for (const PlannedThread& thread : plan) {
      const auto position = builder.add_thread(thread.tid, thread.name, kStart);
      EXPECT_TRUE(position.ok());
      for (const Step& step : thread.steps) {
        EXPECT_TRUE(
            builder.event(*position, step.ns, builder.function_of(step.name), step.kind).ok());
      }
    }
    if (also) also(builder);
    const auto made = builder.finish(storage::SessionState::kComplete, "planned");
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }

  int run_convert(const std::string& input, exports::Target to, const std::string& output) {
    ConvertOptions options;
    options.inputs = {input};
    options.to = to;
    options.output = output;
    options.json = true;
    std::ostringstream out, err;
    const int code = convert(options, out, err);
    // As words, too: an error is where the report would.
    if (out.str().find("\"error\":{") != std::string::npos) {
      options.json = false;
      out.str("");
      err.str("");
      EXPECT_EQ(convert(options, out, err), code);
    }
    said_ = err.str();
    report_ = code == 2 ? json() : json::parse(out.str(), nullptr, false);
    EXPECT_FALSE(report_.is_discarded()) << out.str();
    return code;
  }
  std::string written(size_t i = 0) const { return report_["written"][i]["path"]; }

  static Plan read_session(const std::string& directory) {
    Plan plan;
    const auto trace = read::open_trace(directory);
    EXPECT_TRUE(trace.ok());
    if (!trace.ok()) return plan;
    const auto manifest = read::SessionManifest::parse(*trace->manifest);
    EXPECT_TRUE(manifest.ok());
    const read::NameTable names(*manifest);
    const atf::SessionReader session(trace->files());
    for (const atf::SessionThread& thread : session.threads()) {
      PlannedThread& read = plan.emplace_back();
      read.tid = thread.index->header().thread_id;
      read.name = manifest->thread(thread.n)->name;
      thread.index->events().for_each([&](uint64_t, const atf::IndexEvent& event) {
        read.steps.push_back(
            {event.timestamp_ns, event.kind, std::string(names.name_of(event.function_id))});
      });
    }
    return plan;
  }
  static storage::Manifest manifest_of(const std::string& directory) {
    const auto trace = read::open_trace(directory);
    auto manifest = storage::manifest_from_json(*trace->manifest);
    EXPECT_TRUE(manifest.ok());
    return std::move(*manifest);
  }

  static wtf::FileReport check(const std::string& path) {
    const auto bytes = atf::testing::file_bytes(path);
    wtf::FileReport report = wtf::check_file(bytes);
    for (const auto& finding : report.findings.list()) {
      if (finding.severity != Severity::kNote) ADD_FAILURE() << finding.sentence;
    }
    EXPECT_EQ(report.grade, wtf::Grade::kOk);
    EXPECT_TRUE(report.viewer_loads);
    return report;
  }
  // What the published library made of it; null when it is not there.
  json viewed(const std::string& path, bool loads = true) {
    const fs::path reference = atf::testing::reference_folder();
    if (reference.empty()) {
      part_left_out("the driver of the viewer's library, which the reference pack has");
      return {};
    }
    const child::Ending ending = child::run_shell(
        "node '" + (reference / "tools" / "wtf_oracle.js").string() + "' '" + path + "' --events");
    const int code = ending.exit_code;
    if (code == 2 || code == 127) {
      part_left_out("node or the package tracing-framework is not there");
      return {};
    }
    EXPECT_EQ(code == 0, loads) << path;
    return json::parse(ending.output, nullptr, false);
  }

  fs::path root_;
  std::string said_;
  json report_;
};

}  // namespace collect::ctl::testing
