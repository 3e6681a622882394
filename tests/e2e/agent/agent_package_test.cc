// The agent in someone else's project: agent/example and a program of the C API, built with what
// `cmake --install` makes and nothing else of ours, record into a real collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

// Calls of each function, by its name.
std::map<std::string, uint64_t> calls_of(const RecordedSession& session) {
  std::map<uint64_t, std::string> names;
  for (const json& symbol : session.manifest().value("symbols", json::array())) {
    names[std::stoull(symbol["function_id"].get<std::string>(), nullptr, 16)] =
        symbol["name"].get<std::string>();
  }
  std::map<std::string, uint64_t> calls;
  for (uint32_t thread = 0; thread < session.totals().threads; ++thread) {
    session.for_each_event(thread, [&](const RecordedSession::StoredEvent& event) {
      if (!event.is_return) ++calls[names[event.function_id]];
    });
  }
  return calls;
}

class AgentPackageTest : public testing::Test {
 protected:
  // Somewhere else than where it was installed: nothing in it names its folder.
  AgentPackageTest() {
    ran({E2E_CMAKE, "--install", E2E_BUILD, "--component", "agent", "--prefix",
         scratch_ / "installed"});
    fs::rename(scratch_ / "installed", prefix_);
    fs::copy(E2E_EXAMPLE, scratch_ / "example");
  }

  std::string ran(const Arguments& command, const Environment& more = {}) {
    const Ending ending = run(scratch_.path(), command, more);
    EXPECT_TRUE(ending.exited_with(0))
        << command.front() << ": " << ending.describe() << ending.output << ending.errors;
    return ending.output;
  }
  // The program in scratch/build/<folder>.
  std::string built_by_cmake(const std::string& folder, const std::string& compiler = "cc") {
    ran({E2E_CMAKE, "-G", "Ninja", "-S", scratch_ / folder, "-B", scratch_ / ("build/" + folder),
         "-DCMAKE_PREFIX_PATH=" + prefix_, "-DCMAKE_C_COMPILER=" + compiler,
         "-DCMAKE_BUILD_TYPE=RelWithDebInfo"});
    ran({E2E_CMAKE, "--build", scratch_ / ("build/" + folder), "--verbose"});
    return scratch_ / ("build/" + folder + "/example");
  }
  Environment pkg_config() const { return {{"PKG_CONFIG_PATH", prefix_ + "/lib/pkgconfig"}}; }
  // No library path and no preloading: the program finds the agent itself.
  RecordedSession recorded(const std::string& program, const Arguments& words = {}) {
    Arguments command{program};
    command.insert(command.end(), words.begin(), words.end());
    Environment traced = collector_.tracing();
    traced.erase("LD_PRELOAD");
    ChildProcess process(scratch_.path(), command, traced);
    const Ending& ending = process.wait(seconds(60));
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    printed_ = ending.output;
    auto sessions = sealed_sessions(collector_.root(), process.pid());
    EXPECT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions.at(0).state(), "complete");
    EXPECT_EQ(sessions.at(0).totals().lost, 0u);
    return std::move(sessions.at(0));
  }
  void expect_example_recorded(const std::string& program) {
    const RecordedSession session = recorded(program, {"100"});
    EXPECT_THAT(printed_, StartsWith("25 primes below 100\nagent: "));
    EXPECT_THAT(calls_of(session),
                ElementsAre(Pair("count_primes", 1), Pair("is_prime", 100), Pair("main", 1)));
  }

  Scratch scratch_;
  const std::string prefix_ = scratch_ / "prefix";
  CollectorProcess collector_{scratch_};
  std::string printed_;
};

TEST_F(AgentPackageTest, ExampleByCMake) {
  expect_example_recorded(built_by_cmake("example"));
  EXPECT_TRUE(fs::exists(prefix_ + "/share/doc/libcollect-agent/example/CMakeLists.txt"));
}

// clang has no option that leaves out files.
TEST_F(AgentPackageTest, ExampleByCMakeAndClang) {
  if (!run(scratch_.path(), {"sh", "-c", "command -v clang-19"}).exited_with(0)) {
    GTEST_SKIP() << "there is no clang-19";
  }
  expect_example_recorded(built_by_cmake("example", "clang-19"));
}

TEST_F(AgentPackageTest, ExampleByPkgConfig) {
  ran({"make", "-C", scratch_ / "example"}, pkg_config());
  expect_example_recorded(scratch_ / "example/example");
}

// Who links the agent for its C API gets no hooks with it.
TEST_F(AgentPackageTest, AgentAloneInstrumentsNothing) {
  EXPECT_THAT(ran({"pkg-config", "--cflags", "--libs", "collect-agent"}, pkg_config()),
              Not(HasSubstr("instrument")));
  fs::create_directory(scratch_ / "plain");
  write_text_file(scratch_ / "plain/CMakeLists.txt",
                  "cmake_minimum_required(VERSION 3.16)\n"
                  "project(plain LANGUAGES C)\n"
                  "find_package(collect_agent 0.1 CONFIG REQUIRED)\n"
                  "add_executable(example main.c)\n"
                  "target_link_libraries(example PRIVATE collect_agent::collect_agent)\n");
  write_text_file(scratch_ / "plain/main.c",
                  "#include <collect/agent.h>\n"
                  "void chosen(void) {}\n"
                  "int main(void) {\n"
                  "  collect_enter((const void*)chosen, 0);\n"
                  "  collect_exit((const void*)chosen, 0);\n"
                  "  return 0;\n"
                  "}\n");
  EXPECT_THAT(calls_of(recorded(built_by_cmake("plain"))), ElementsAre(Pair("chosen", 1)));
}

TEST_F(AgentPackageTest, AnotherVersionIsNotTaken) {
  write_text_file(scratch_ / "example/CMakeLists.txt",
                  "cmake_minimum_required(VERSION 3.16)\n"
                  "project(example LANGUAGES C)\n"
                  "find_package(collect_agent 0.2 CONFIG REQUIRED)\n");
  const Ending ending =
      run(scratch_.path(), {E2E_CMAKE, "-G", "Ninja", "-S", scratch_ / "example", "-B",
                            scratch_ / "build", "-DCMAKE_PREFIX_PATH=" + prefix_});
  EXPECT_TRUE(ending.exited_with(1)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("compatible with requested version \"0.2\""));
}

}  // namespace
}  // namespace collect::e2e
