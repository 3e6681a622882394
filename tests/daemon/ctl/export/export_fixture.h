// Sessions that are exported, and what programs that are not ours make of the files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/ctl/convert/convert.h"
#include "tests/daemon/ctl/offline_session.h"

namespace collect::ctl::testing {

using nlohmann::json;

class ExportTest : public OfflineTest {
 protected:
  static constexpr const char* kSymbols =
      R"("symbols":[{"function_id":"0xa","name":"a"},{"function_id":"0xb","name":"b"},
                    {"function_id":"0xc","name":"c"}])";

  // `more`: further members, each with a comma behind it.
  void write_manifest(const std::string& more, const std::string& threads) {
    write_text(session_ / "manifest.json",
               R"({"state":"complete","process":{"name":"app","pid":42},)" + more + kSymbols +
                   R"(,"threads":)" + threads + "}");
  }
  // Thread 0, "main": a 1000..11000, in it b 2000..9000, in b c 3000..4000; it waits 5000..8000, in
  // b. Thread 1, "worker": c 1000..20000. The process is stopped 10000..10500. A marker at 2500.
  void write_stalled_session() {
    write_thread(0, index_of({{1000, kCall, 0xA},
                              {2000, kCall, 0xB},
                              {3000, kCall, 0xC},
                              {4000, kReturn, 0xC},
                              {9000, kReturn, 0xB},
                              {11000, kReturn, 0xA}},
                             100));
    write_thread(1, index_of({{1000, kCall, 0xC}, {20000, kReturn, 0xC}}, 101));
    write_manifest(
        R"("markers":[{"at_ns":2500,"text":"here"}],
        "stalls":[{"kind":"stopped","first_ns":10000,"last_ns":10500},
                  {"kind":"page_wait","first_ns":5000,"last_ns":8000,"thread":0}],)",
        R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"worker","ended":true}])");
  }
  // One thread with a loss before event `before_seq`.
  void write_lossy_session(const std::vector<Step>& steps, int before_seq, uint64_t first_ns,
                           uint64_t last_ns) {
    write_thread(0, index_of(steps, 100));
    write_manifest(R"("gaps":[{"thread":0,"lane":"index","before_seq":)" +
                       std::to_string(before_seq) + R"(,"lost":5,"numbered_lost":5,"first_ns":)" +
                       std::to_string(first_ns) + R"(,"last_ns":)" + std::to_string(last_ns) +
                       R"(,"reasons":["ring_full"]}],)",
                   R"([{"id":0,"name":"main","ended":true,"lost_events":5}])");
  }

  int run(Target to, const ExportSelection& selection = {}, std::vector<std::string> inputs = {}) {
    ConvertOptions options;
    options.inputs = inputs.empty() ? std::vector<std::string>{session_.string()} : inputs;
    options.to = to;
    options.output = output();
    options.selection = selection;
    options.json = true;
    options.force = true;
    out_.str("");
    err_.str("");
    const int code = convert(options, out_, err_);
    report_ = code == 2 ? json() : json::parse(out_.str(), nullptr, false);
    return code;
  }
  std::string output() const { return (root_ / "out").string(); }
  std::string written() const {
    std::ifstream in(output(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What `command FILE` prints, as JSON; null where it fails.
  json read_by(const std::string& command) {
    const std::string result = (root_ / "result.json").string();
    FILE* const pipe = popen((command + " '" + output() + "' > '" + result + "'").c_str(), "r");
    const int raw = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(raw) && WEXITSTATUS(raw) == 0) << command;
    std::ifstream in(result);
    return json::parse(in, nullptr, false);
  }
  // Through protoc and an importer by upstream's rules.
  json imported() { return read_by("python3 " FORMAT_TESTS "/perfetto/import_trace.py"); }
  json profile() { return read_by("python3 " FORMAT_TESTS "/pprof/read_profile.py"); }

  json report_;
};

}  // namespace collect::ctl::testing
