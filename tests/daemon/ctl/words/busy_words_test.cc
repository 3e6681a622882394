// Every word of dump and report of a session in which everything happens: calls without a return
// and returns without a call, a gap, stalls, unknown kinds, threads that cannot be read, calls of
// seconds, deep ones. expected/ has a text for each test.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/words/words_fixture.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using testing::index_of;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::Octets;
using testing::WordsTest;

constexpr uint64_t kA = uint64_t{1} << 32 | 1, kB = uint64_t{2} << 32 | 2,
                   kC = uint64_t{1} << 32 | 3, kD = uint64_t{3} << 32 | 4;

class BusyWords : public WordsTest {
 protected:
  void SetUp() override {
    WordsTest::SetUp();
    put("busy/thread_0/index.atf", index_of({{1'000, kCall, kA},
                                             {2'000, kCall, kB},
                                             {3'000, kCall, kC},
                                             {4'000, kReturn, kB},
                                             {5'000, kCall, kB},
                                             {5'500, kException, kB},
                                             {6'000, kCall, kA},
                                             {6'500, kCall, kC},
                                             {9'000, kCall, kB},
                                             {2'000'009'500, kReturn, kB},
                                             {2'500'000'000, kCall, kD},
                                             {2'501'000'000, kReturn, kD},
                                             {3'000'000'000, kReturn, kA}},
                                            100));
    Octets other = index_of({{1'500, kReturn, kD},
                             {2'500, kCall, kD},
                             {2'600, kCall, kB},
                             {2'700, kReturn, kB},
                             {7'000, kCall, kC}},
                            101);
    other[64 + 32 * 3 + 24] = 9;  // an unknown kind, instead of a return
    put("busy/thread_3/index.atf", other);
    put("busy/thread_4/index.atf", {'n', 'o'});
    put_text("busy/manifest.json", R"json({"threads":[{"id":0,"thread_id":100,"name":"main",
      "ended":true,"lost_events":3},{"id":3,"name":"worker \"1\"","lost_events":0}],
      "format_version":"2.2","state":"failed","reason":"no space",
      "process":{"name":"busy"},"time_start_ns":1000,"time_end_ns":3000000000,
      "modules":[{"module_id":1,"path":"/bin/app"},{"module_id":2,"path":"/lib/libb.so"}],
      "symbols":[{"function_id":"0x100000001","name":"void app::a(int)"
    },
                 {"function_id":"0x200000002","name":"b"},
                 {"function_id":"0x100000009","name":"never"}],
      "gaps":[{"thread":0,"lane":"index","before_seq":8,"lost":3,"first_ns":6600,"last_ns":8000}],
      "stalls":[{"kind":"page_wait","thread":0,"first_ns":10000,"last_ns":1000010000,"joined":2},
                {"kind":"stopped","first_ns":2000,"last_ns":2400},
                {"kind":"suspended","first_ns":6800,"last_ns":6900}]
    })json");
    put("calm/thread_0/index.atf", index_of({{1'000, kCall, kA},
                                             {1'500, kCall, kB},
                                             {1'900, kReturn, kB},
                                             {4'000'000'000, kReturn, kA}},
                                            100));
    put_text("calm/manifest.json", R"json({"threads":[{"id":0,"name":"main"}],
      "symbols":[{"function_id":"0x100000001","name":"void app::a(int)"
    },
                 {"function_id":"0x200000002","name":"b"}]
    })json");
  }
  void put_text(const std::string& name, const std::string& text) {
    put(name, {text.begin(), text.end()});
  }
};

TEST_F(BusyWords, Reports) {
  for (const std::string by : {"", " --by thread", " --by module", " --by caller"}) {
    run("report busy" + by);
    run("report --json busy" + by);
    run("report --percentiles --sort name busy" + by);
    run("report --diff calm busy" + by);
    run("report --json --sort self --limit 2 --diff calm busy" + by);
    run("report --json --from 1us --until 5us busy" + by);
  }
  // Rows are sorted and counted alike for any --by.
  run("report --sort self --limit 2 busy");
  run("report --json --sort calls --limit 1 busy");
  run("report --sort name --limit 0 busy");
  run("report --sort calls --diff calm busy");
  run("report --sort name --limit 1 --diff busy calm --by caller");
  run("report --from 2000 --until 9500 busy");
  run("report --from 8100 busy");
  run("report --thread thread_3 busy");
  run("report --json --thread name=main --thread 101 busy");
  run("report --thread 7 busy");
  run("report --from 5 --until 4 busy");
  run("report --from 5 --until 5 busy");
  run("report --from never busy");
  run("report --until 12:00 busy");
  for (const std::string function : {"a", "b", "0x100000003", "0x300000004"}) {
    run("report --graph " + function + " busy");
    run("report --json --graph " + function + " busy");
  }
  run("report --graph b --limit 1 busy");
  run("report --json --graph b --limit 1 busy");
  run("report --graph b --limit 0 busy");
  run("report --graph never busy");
  run("report --graph nevr busy");
  run("report --graph 0x busy");
  run("report --graph b --by caller busy");
  run("report --graph b --diff calm busy");
  run("report --diff none busy");
  run("report none");
  run("report --diff busy calm");
  run("report busy/thread_0");
  run("report busy/thread_0/index.atf");
  run("report busy/thread_4");
  expect_words("busy_report");
}

TEST_F(BusyWords, Dumps) {
  run("dump busy");
  run("dump --json busy");
  run("dump --merged busy");
  run("dump --merged --json busy");
  run("dump --merged --json --from 2100 --until 6850 busy");
  run("dump --from 2100 --until 6850 busy");
  run("dump --function b busy");
  run("dump --json --function app::a --function 0x100000003 busy");
  run("dump --merged --function b --limit 3 busy");
  run("dump --function nevr --from 1 busy");
  run("dump --function never busy");
  run("dump --function 0x busy");
  run("dump --thread 7 busy");
  run("dump --thread x busy");
  run("dump busy calm");
  run("dump --json --limit 14 busy calm");
  run("dump --merged busy calm");
  run("dump --function b --function x busy calm");
  run("dump --limit 0 busy");
  run("dump busy/thread_3");
  run("dump busy/thread_4/index.atf");
  run("inspect busy");
  run("inspect --json busy");
  run("inspect busy/thread_4");
  run("inspect calm");
  run("verify busy");
  run("verify --json --strict busy");
  run("verify --allow-incomplete calm");
  put_text("broken/manifest.json", "{");
  put("broken/thread_0/index.atf", octets("calm/thread_0/index.atf"));
  run("dump --limit 1 broken");
  run("report broken");
  run("inspect broken");
  expect_words("busy_dump");
}

// Deeper than a line is indented, and deeper than is counted.
TEST_F(BusyWords, Depths) {
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < 102; ++i) steps.push_back({1000 + i, kCall, 0x10 + i});
  for (uint64_t i = 102; i-- > 99;) steps.push_back({5000 - i, kReturn, 0x10 + i});
  put("deep/thread_0/index.atf", index_of(steps, 1));
  put_text("deep/manifest.json", R"json({"threads":[{"id":0}]})json");
  run("dump --from 1098 deep");
  run("report --graph 0x10 --limit 101 deep");
  // One event is the origin of its times.
  put("single/thread_0/index.atf", index_of({{1'000, kCall, kA}}, 1));
  put_text("single/manifest.json", R"json({"threads":[{"id":0}]})json");
  run("dump single");
  run("report single");
  // Events are lost before the first call, of which no one is the caller.
  put("behind/thread_0/index.atf", index_of({{500, kReturn, kD},
                                             {1'000, kCall, kB},
                                             {2'000, kCall, kC},
                                             {3'000, kReturn, kC},
                                             {4'000, kReturn, kB}},
                                            1));
  put_text("behind/manifest.json", R"json({"threads":[{"id":0,"lost_events":5}],
    "gaps":[{"thread":0,"lane":"index","before_seq":1,"lost":5,"first_ns":600,"last_ns":900}]})json");
  run("report --by caller behind");
  run("report --graph 0x200000002 behind");
  run("report --graph 0x100000003 behind");
  expect_words("busy_depths");
}

// Sessions of two devices, one of them compared with the collector's clock.
TEST_F(BusyWords, TimeLines) {
  const auto clock = [&](const std::string& name, const std::string& process,
                         const std::string& syncs) {
    put_text(name + "/manifest.json",
             R"json({"threads":[{"id":0,"name":"main"}],"process":)json" + process +
                 R"json(,"stalls":[{"kind":"stopped","first_ns":1600,"last_ns":1700}])json" +
                 syncs + R"json(,"symbols":[{"function_id":"0x100000001","name":"a"}]})json");
  };
  clock("calm", R"json({"name":"phone","device_model":"Phone 1","device_id":"x"})json",
        R"json(,"clock_sync":[{"at_ns":500,"offset_ns":-500,"uncertainty_ns":1999,
           "at_unix_ns":1700000000000000500,"boot_id":"b"},
           {"at_ns":3000,"offset_ns":-500,"uncertainty_ns":2500,
           "at_unix_ns":1700000000000003000,"boot_id":"b"}])json");
  put("server/thread_1/index.atf", octets("calm/thread_0/index.atf"));
  clock("server", R"json({"name":"server","device_id":"y","start_ns":1000,
                      "start_unix_ns":1700000000000001700})json",
        "");
  run("dump --merged calm server");
  run("dump --merged --json calm server");
  run("dump --merged --json --from 1700000000000002000 --until 1700000000000002300 calm server");
  run("dump --merged --function a --limit 2 server calm");
  run("inspect calm");
  run("inspect --json calm");
  run("inspect server");
  clock("server", R"json({"name":"server"})json", "");
  run("dump --merged calm server");
  run("inspect server");
  expect_words("busy_time_lines");
}

// Records of their own, and with what they belong to.
TEST_F(BusyWords, DetailRecords) {
  for (const auto& [name, version] :
       {std::pair("one", atf::Version::kV1), std::pair("two", atf::Version::kV2)}) {
    atf::testing::ThreadPlan plan;
    plan.version = version;
    plan.events = 6;
    plan.detail_every = 2;
    const auto made = build_thread(plan);
    const std::string thread = std::string(name) + "/thread_0/";
    put(thread + "index.atf", made.index);
    put(thread + "detail.atf", made.detail);
    put_text(std::string(name) + "/manifest.json",
             R"json({"threads":[{"id":0,"has_detail":true}]})json");
    run("dump --detail " + std::string(name));
    run("dump --detail --json " + std::string(name));
    run("dump --detail --merged --json --from 1020 " + std::string(name));
    run("dump --json --limit 2 " + std::string(name));
    run("dump " + thread + "detail.atf");
    run("dump --json " + thread + "detail.atf");
    run("dump --from 1020 --until 1020 " + thread + "detail.atf");
    run("dump --limit 1 " + thread + "detail.atf");
    run("dump --limit 0 " + thread + "detail.atf");
    run("inspect " + thread + "detail.atf");
  }
  run("dump two two/thread_0/detail.atf");
  Octets cut = octets("two/thread_0/detail.atf");
  cut.resize(40);
  put("alone/thread_0/detail.atf", cut);
  run("dump alone/thread_0/detail.atf");
  run("inspect alone/thread_0/detail.atf");
  run("inspect --json alone");
  run("dump alone");
  expect_words("busy_detail");
}

}  // namespace
}  // namespace collect::ctl
