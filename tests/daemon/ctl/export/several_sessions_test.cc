// Sessions of several devices in one file, in every format, against expected/FORMAT_several.json.
// With COLLECT_WRITE_EXPORTS=1 they are written there; times, names and ids were worked out by hand
// from the sessions below before they were kept.
#include "storage/export/export.h"
#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using ::testing::HasSubstr;
using testing::index_of;
using testing::json;
using testing::kCall;
using testing::kReturn;

constexpr uint64_t kEpoch = 1'800'000'000'000'000'000;
constexpr uint64_t kModule = uint64_t{1} << 32;

class ExportSeveral : public testing::ExportTest {
 protected:
  // A session whose clock is `ahead_ns` ahead of the collector's; what follows goes into it.
  // `members`: of the manifest, besides its clock and its threads.
  void begin_session(const std::string& name, uint64_t ahead_ns, const std::string& members,
                     const std::string& threads) {
    session_ = root_ / "session_20250102_030405" / name;
    testing::fs::create_directories(session_);
    write_text(session_ / "manifest.json",
               R"({"state":"complete",)" + members + R"("threads":)" + threads +
                   R"(,"clock_sync":[{"at_ns":1000,"offset_ns":)" + std::to_string(ahead_ns) +
                   R"(,"uncertainty_ns":25000,"at_unix_ns":)" + std::to_string(kEpoch + 1000) +
                   R"(,"boot_id":"b"}]})");
    inputs_.push_back(session_.string());
  }
  // On the collector's clock all four lie at kEpoch + 500 … + 2300. The first two have the same
  // pid and tids, the second one names its functions in another order and has a device without a
  // model. The third one says nothing of itself; the fourth one has no event.
  void write_sessions() {
    constexpr uint64_t kAhead = 5'000'000;
    begin_session("phone", kAhead, R"(
      "process":{"name":"app","pid":42,"device_model":"Phone","device_id":"id-1",
                 "start_unix_ns":1700000000000000000},
      "modules":[{"module_id":1,"path":"/bin/app","base_address":"0x5000","size":4096}],
      "symbols":[{"function_id":"0x10000000a","name":"a","args":{"source":"src/a.c:12"}},
                 {"function_id":"0x10000000b","name":"b"}],
      "markers":[{"at_ns":5001150,"text":"of the phone"}],
      "stalls":[{"kind":"stopped","first_ns":5001600,"last_ns":5001650}],
      "gaps":[{"thread":0,"lane":"index","before_seq":2,"lost":3,"numbered_lost":3,
               "first_ns":5001250,"last_ns":5001300,"reasons":["ring_full"]}],)",
                  R"([{"id":0,"name":"main","ended":true,"lost_events":3},
                      {"id":1,"name":"","ended":true}])");
    write_thread(0, index_of({{kAhead + 1000, kCall, kModule | 0xA},
                              {kAhead + 1200, kCall, kModule | 0xB},
                              {kAhead + 1400, kReturn, kModule | 0xB},
                              {kAhead + 2000, kReturn, kModule | 0xA}},
                             100));
    write_thread(1, index_of({{kAhead + 1100, kCall, kModule | 0xB},
                              {kAhead + 1900, kReturn, kModule | 0xB}},
                             101));
    begin_session("server", 0, R"(
      "process":{"name":"app","pid":42,"device_id":"id-2","start_unix_ns":1600000000000000000},
      "modules":[{"module_id":1,"path":"/bin/server","base_address":"0x8000","size":4096}],
      "symbols":[{"function_id":"0x10000000a","name":"b"},
                 {"function_id":"0x10000000c","name":"c"}],
      "stalls":[{"kind":"page_wait","first_ns":1700,"last_ns":1710,"thread":0}],)",
                  R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"","ended":true}])");
    write_thread(0, index_of({{1300, kCall, kModule | 0xC},
                              {1500, kCall, kModule | 0xA},
                              {1800, kReturn, kModule | 0xA},
                              {2300, kReturn, kModule | 0xC}},
                             100));
    write_thread(1, index_of({{1350, kCall, kModule | 0xA}, {1450, kReturn, kModule | 0xA}}, 101));
    begin_session("unknown", 100, "", R"([{"id":0,"name":"","ended":true}])");
    write_thread(0, index_of({{600, kCall, 0x77}, {2000, kCall, 0x78}}, 0));
    begin_session("idle", 0, R"("process":{"name":"idle","pid":7,"device_model":"Tablet"},)",
                  R"([{"id":0,"name":"main","ended":true}])");
    write_thread(0, index_of({}, 103));
  }

  std::vector<std::string> inputs_;
};

TEST_F(ExportSeveral, EveryFormatHasThemOnOneTimeLine) {
  write_sessions();
  expect_all_formats("_several", {}, inputs_);
}

TEST_F(ExportSeveral, WindowIsOneOfTheCollectorsClock) {
  write_sessions();
  exports::ExportSelection selection;
  selection.when.from = std::to_string(kEpoch + 1150);
  selection.when.until = std::to_string(kEpoch + 1750);
  selection.functions = {"b"};
  expect_part("_several_part", selection, inputs_, {});
}

TEST_F(ExportSeveral, WindowSinceTheEarliestStart) {
  write_sessions();
  exports::ExportSelection selection;
  ASSERT_EQ(run(Target::kFolded, selection, inputs_), 0) << err_.str();
  const std::string all = written();
  selection.when.from = "0s";
  selection.when.until = "1h";
  ASSERT_EQ(run(Target::kFolded, selection, inputs_), 0) << err_.str();
  EXPECT_EQ(written(), all);
  selection.when.from = "1h";
  selection.when.until = "1s";
  EXPECT_EQ(run(Target::kFolded, selection, inputs_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--until is before --from"));
}

// What one of them alone has is found; what none of them has is not.
TEST_F(ExportSeveral, WordMeansSomethingInOneOfThem) {
  write_sessions();
  exports::ExportSelection selection;
  selection.functions = {"a", "c"};
  ASSERT_EQ(run(Target::kFolded, selection, inputs_), 0) << err_.str();
  EXPECT_EQ(written(),
            "Phone: app;main;a 750\nPhone: app;main;a 200\nPhone: app;main;[stalled] 50\n"
            "Phone: app;thread 101;[stalled] 50\n"
            "id-2: app;main;c 700\nid-2: app;main;c 290\nid-2: app;main;[stalled] 10\n");
  selection.functions = {"a", "none", "c"};
  EXPECT_EQ(run(Target::kFolded, selection, inputs_), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no function matches \"none\""));
  selection.functions = {};
  selection.threads = {"101", "0"};
  ASSERT_EQ(run(Target::kFolded, selection, inputs_), 0) << err_.str();
  EXPECT_EQ(written(),
            "Phone: app;thread 101;b 750\nPhone: app;thread 101;[stalled] 50\n"
            "id-2: app;thread 101;b 100\nprocess;thread 0;0x77 1400\n");
  selection.threads = {"101", "4711"};
  EXPECT_EQ(run(Target::kFolded, selection, inputs_), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no thread is \"4711\""));
  selection.threads = {"101", "no word"};
  EXPECT_EQ(run(Target::kFolded, selection, inputs_), 2);
}

// The clock of one of them is not known at all.
TEST_F(ExportSeveral, RejectsASessionWithoutAClock) {
  write_sessions();
  write_text(session_ / "manifest.json", R"({"state":"complete","threads":[]})");
  EXPECT_EQ(run(Target::kFolded, {}, inputs_), 2);
  EXPECT_THAT(err_.str(), HasSubstr(session_.string() +
                                    ": can't be laid on a time line with others: its clock was"));
}

}  // namespace
}  // namespace collect::ctl
