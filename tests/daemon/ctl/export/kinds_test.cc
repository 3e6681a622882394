// Each kind of thing that a session has, and each format that it is converted to: it is in the
// file, or it is counted as left out. Nothing is dropped in silence.
#include <fstream>
#include <iterator>

#include "storage/convert/session_builder.h"
#include "storage/model/switch_times.h"
#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using testing::json;
using testing::kCall;
using testing::kReturn;
namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All files below it, one behind the other.
std::string text_below(const fs::path& path) {
  if (!fs::is_directory(path)) return text_of(path);
  std::string text;
  for (const auto& file : fs::recursive_directory_iterator(path)) {
    if (file.is_regular_file()) text += text_of(file.path());
  }
  return text;
}

struct Kind {
  const char* name;
  std::vector<std::string> left_out;  // its words begin so, with any of these
  std::vector<std::string> evidence;  // any of these in the file, or in what the command says
};

const Kind kKinds[] = {
    {"markers", {"markers"}, {"marker_text"}},
    {"detail records",
     {"detail records", "notes of calls"},
     {"detail_bytes", "64657461696c5f6279746573"}},
    {"losses", {}, {"5 events", "\"lost_events\":5", "\"lost\":5"}},
    {"losses of detail records", {"losses of detail records"}, {"\"lane\":\"detail\""}},
    {"stalls",
     {"stalls"},
     {"\"kind\":\"page_wait\"", "stall: page_wait", "[stalled]", "\"stalls\":[["}},
    {"times off the processor",
     {"times off the processor"},
     {"\"switches\":1", "\"blocked\"", "[blocked]", "\"cpu\""}},
    {"waits for locks", {"waits for locks"}, {"\"lock_waits\":1"}},
    {"samples", {"samples"}, {"\"samples\":1"}},
    {"source lines", {"source lines"}, {"source_file.c"}},
    {"ends of threads", {"ends of threads"}, {"\"end_ns\":7654321", "end of thread_name"}},
    {"end of the process", {"end of the process"}, {"\"exit_code\":77", "exited with 77"}},
    {"clocks", {"comparisons of clocks"}, {"collector_boot"}},
    {"names of functions", {}, {"function_name"}},
    {"names of threads", {}, {"thread_name"}},
    {"name of the process", {}, {"process_name"}},
};

class ExportKinds : public testing::ExportTest {
 protected:
  // One of each kind.
  std::string write_full_session() {
    convert::SessionBuilder builder(storage::PosixFs((root_ / "full").string()), atf::Version::kV2);
    convert::BuiltProcess process;
    process.name = "process_name";
    process.pid = 42;
    process.arch = atf::Arch::kX86_64;
    process.os = atf::Os::kLinux;
    process.clock = atf::ClockType::kBoottime;
    process.start_ns = 1'000'000;
    process.start_unix_ns = 1'700'000'000'000'000'000;
    EXPECT_TRUE(builder.begin(process).ok());
    EXPECT_TRUE(builder.add_thread(101, "thread_name", 1'000'000, 7'654'321).ok());
    EXPECT_TRUE(builder.add_thread(102, "other", 1'000'000).ok());
    builder.add_module({1, "/lib/module.so", {0xAB}, 0x5000, 4096, 0, 0});
    constexpr uint64_t kFunction = uint64_t{1} << 32 | 0x10;
    builder.name_function({kFunction, "function_name", "source_file.c", 12});
    builder.process_ended({storage::ProcessEnd::How::kExited, 77, 0, false});
    EXPECT_TRUE(builder.marker(2'000'000, "marker_text").ok());
    const std::string detail = "detail_bytes";
    const Bytes payload(reinterpret_cast<const uint8_t*>(detail.data()), detail.size());
    EXPECT_TRUE(builder.event(0, 1'000'000, kFunction, kCall, payload).ok());
    EXPECT_TRUE(builder.event(0, 2'000'000, kFunction, kReturn).ok());
    builder.lost(0, Lane::kIndex, 5, kLostRingFull, 2'100'000, 2'200'000);
    builder.lost(0, Lane::kDetail, 3, kLostOverwritten, 2'100'000, 2'200'000);
    EXPECT_TRUE(builder.event(0, 3'000'000, kFunction, kCall, payload).ok());
    EXPECT_TRUE(builder.event(0, 7'000'000, kFunction, kReturn).ok());
    EXPECT_TRUE(builder.event(1, 8'000'000, kFunction, kCall).ok());
    const auto made = builder.finish(storage::SessionState::kComplete, "exit");
    EXPECT_TRUE(made.ok());
    const fs::path manifest_path = fs::path(*made) / "manifest.json";
    auto manifest = storage::manifest_from_json(text_of(manifest_path));
    EXPECT_TRUE(manifest.ok());
    manifest->stalls = {{storage::StallKind::kPageWait, 4'000'000, 5'000'000, 1'000'000, 1, 0},
                        {storage::StallKind::kBlocked, 5'500'000, 6'500'000, 1'000'000, 1, 0},
                        {storage::StallKind::kLock, 5'400'000, 6'600'000, 1'200'000, 1, 0, 102, 1},
                        {storage::StallKind::kSample, 5'450'000, 5'450'000, 0, 1, 0, 0, 1}};
    for (const storage::Stall& stall : manifest->stalls) {
      manifest->totals.stalls.add(stall);
      manifest->threads[0].stalls.add(stall);
    }
    manifest->clock_syncs.push_back(
        {1'000'000, -500, 250, 1.5, 1'700'000'000'000'000'000, "collector_boot"});
    const std::vector<uint8_t> switches =
        storage::encode_switches(std::span(manifest->stalls).subspan(1));
    write_text(fs::path(*made) / storage::kSwitchesFile, {switches.begin(), switches.end()});
    manifest->identity.switches = true;
    manifest->passthrough_streams = {{storage::PassthroughKind::kSwitches, switches.size()}};
    write_text(manifest_path, storage::manifest_to_json(*manifest));
    return *made;
  }

  // What a reader finds in the file that was made.
  std::string found_in(Target to) {
    switch (to) {
      case Target::kPerfetto:
        return imported().dump();
      case Target::kPprof:
        return profile().dump();
      case Target::kAtf:
        return text_below(fs::path(report_["written"][0]["path"].get<std::string>()));
      default:
        break;
    }
    if (exports::is_view(to)) return text_below(output());
    // Of numbers in bytes a session that is made of them again has the text.
    const fs::path capture = root_ / "capture";
    fs::remove_all(capture);
    fs::rename(output(), capture);
    const json first = report_;
    EXPECT_LE(run(Target::kAtf, {}, {capture.string()}), 1) << err_.str();
    const std::string again = found_in(Target::kAtf);
    report_ = first;
    return text_of(capture) + again;
  }
};

TEST_F(ExportKinds, EachKindIsInTheFileOrReported) {
  const std::string session = write_full_session();
  exports::for_each_target([&](Target to) {
    SCOPED_TRACE(std::string(name_of(to)));
    fs::remove_all(output());
    ASSERT_EQ(run(to, {}, {session}), 0) << err_.str();
    const json left_out = report_["left_out"];
    const std::string said = report_["counts"].dump() + report_["remarks"].dump();
    std::string found = found_in(to);
    std::erase_if(found, [](char c) { return c == ' ' || c == '\n'; });
    for (const Kind& kind : kKinds) {
      const bool is_left_out = std::ranges::any_of(kind.left_out, [&](const std::string& words) {
        return std::ranges::any_of(left_out.items(),
                                   [&](const auto& item) { return item.key().starts_with(words); });
      });
      const bool is_there = std::ranges::any_of(kind.evidence, [&](std::string text) {
        if (said.find(text) != std::string::npos) return true;
        std::erase(text, ' ');
        return found.find(text) != std::string::npos;
      });
      EXPECT_TRUE(is_there || is_left_out) << kind.name << " is nowhere; left out: " << left_out;
      EXPECT_FALSE(is_there && is_left_out) << kind.name << " is in the file and left out";
    }
  });
}

// What is left out fails a strict conversion.
TEST_F(ExportKinds, StrictFailsForEachFormatThatLeavesSomethingOut) {
  const std::string session = write_full_session();
  exports::for_each_target([&](Target to) {
    SCOPED_TRACE(std::string(name_of(to)));
    fs::remove_all(output());
    ConvertOptions options;
    options.inputs = {session};
    options.to = to;
    options.output = output();
    options.force = options.json = options.strict = true;
    out_.str("");
    const int code = convert(options, out_, err_);
    const json report = json::parse(out_.str());
    EXPECT_EQ(code, report["left_out"].empty() ? 0 : 1) << report["left_out"];
  });
}

}  // namespace
}  // namespace collect::ctl
