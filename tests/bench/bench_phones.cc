// How soon an app on a phone is recorded: from the command to the first event that is stored,
// through an adb server and a phone of the tests. What a phone itself takes (starting an app, USB)
// is not in it.
//
// bench_phones REPEATS
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/cpu_time.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_adb_server.h"
#include "tests/fakes/phones/fake_phone.h"

namespace collect::bench {
namespace {

using e2e::Arguments;
using e2e::ChildProcess;
using e2e::Environment;

constexpr e2e::seconds kLimit{60};
constexpr size_t kHeaderBytes = 64;  // of an ATF index
constexpr size_t kEventBytes = 32;
const char* const kApp = "com.example.app";

class PhoneBench {
 public:
  PhoneBench() {
    adb_.start();
    fakes::FakePhone phone;
    phone.folder = phone_.path();
    adb_.plug("R58M", phone);
    // It never rests, so that the first page is full at once: a tail waits for its block.
    phone_.install(kApp, e2e::traced_program("chaos") + " " + scratch_ / "progress" + " 1 " +
                             std::to_string(UINT64_MAX));
  }

  // Until its first event is stored; then Ctrl-C.
  double record(const Arguments& command, const std::string& root) {
    Arguments all = {e2e::program("collectctl"), "android"};
    all.insert(all.end(), command.begin(), command.end());
    const double begin = wall_seconds();
    ChildProcess job(scratch_.path(), all, environment());
    const double took = until(begin, job, [&] { return stores(root); });
    job.send_signal(SIGINT);
    job.wait(kLimit);
    return took;
  }
  double run(const std::string& root) {
    return record({"run", "-o", root, "--agent", e2e::agent_library(), kApp}, root);
  }
  double attach(const std::string& root) { return record({"attach", "-o", root, kApp}, root); }
  // With a collector that runs already.
  double attach_to(const e2e::CollectorProcess& collector, const std::string& root) {
    return record({"attach", "--control", collector.control(), kApp}, root);
  }
  // A collector that looks for phones: from the app's start to its first event.
  double found_by_itself(const e2e::CollectorProcess& collector) {
    const double begin = wall_seconds();
    ChildProcess app(scratch_.path(), {e2e::traced_program("chaos"), scratch_ / "progress", "1"},
                     {{"LD_PRELOAD", e2e::agent_library()}, {"COLLECT_LISTEN", "abstract:"}});
    adb_.add_socket("R58M", "collect_agent_" + std::to_string(app.pid()));
    const double took = until(begin, app, [&] { return stores(collector.root(), app.pid()); });
    app.send_signal(SIGKILL);
    app.wait(kLimit);
    return took;
  }

  Environment environment() const {
    return {{"ANDROID_ADB_SERVER_PORT", std::to_string(adb_.port())},
            {"ADB_SERVER_SOCKET", ""},
            {"ANDROID_ADB_SERVER_ADDRESS", ""},
            {"ANDROID_SERIAL", ""},
            {"COLLECT_CONTROL", ""}};
  }
  std::string adb() const { return "127.0.0.1:" + std::to_string(adb_.port()); }
  const e2e::Scratch& scratch() const { return scratch_; }
  void end_app() { phone_.end_apps(); }

 private:
  static bool stores(const std::string& root, int pid = 0) {
    for (const std::string& session : e2e::session_directories(root, pid)) {
      const std::string index = e2e::read_text_file(session + "/thread_0/index.atf");
      const bool has_event = index.size() >= kHeaderBytes + kEventBytes &&
                             index.find_first_not_of('\0', kHeaderBytes) != std::string::npos;
      if (has_event && !is_old(session)) return true;
    }
    return false;
  }
  static bool is_old(const std::string& session) {
    return e2e::read_text_file(session + "/manifest.json").find("\"complete\"") !=
           std::string::npos;
  }
  static double until(double begin, ChildProcess& process, const std::function<bool()>& holds) {
    if (e2e::eventually(kLimit, [&] { return holds() || !process.running(); }) && holds()) {
      return wall_seconds() - begin;
    }
    std::printf("nothing was stored:\n%s\n", process.errors().c_str());
    std::exit(1);
  }

  e2e::Scratch scratch_;
  fakes::FakePhoneFolder phone_;
  fakes::FakeAdbServer adb_;
};

void print(const char* what, std::vector<double> times, const char* wanted) {
  std::sort(times.begin(), times.end());
  std::printf("%-52s %6.2f s   (%.2f to %.2f)   %s\n", what, times[times.size() / 2], times.front(),
              times.back(), wanted);
}

int main_of(int repeats) {
  PhoneBench bench;
  std::vector<double> run, attach, attach_to, found;
  for (int i = 0; i < repeats; ++i) {
    const std::string root = bench.scratch() / ("traces" + std::to_string(i));
    run.push_back(bench.run(root));
    attach.push_back(bench.attach(root + "a"));
  }
  {
    e2e::CollectorProcess collector(bench.scratch(), {"--adb", bench.adb()});
    for (int i = 0; i < repeats; ++i) {
      attach_to.push_back(bench.attach_to(collector, collector.root()));
    }
    bench.end_app();
    for (int i = 0; i < repeats; ++i) found.push_back(bench.found_by_itself(collector));
  }
  std::printf("from the command to the first stored event, medians of %d\n", repeats);
  print("android run, a collector of its own", run, "contract: at most 2.5 s");
  print("android attach, a collector of its own", attach, "");
  print("android attach, a collector that runs", attach_to, "contract: at most 0.5 s");
  print("a collector that runs, from the app's start", found, "");
  return 0;
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  return collect::bench::main_of(argc > 1 ? std::atoi(argv[1]) : 5);
}
