// `collectctl symbolize --debuginfod` against elfutils' own server, in a network of its own: that
// server listens at every address.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/own_network.h"
#include "tests/fakes/phones/plain_socket.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kServer[] = "/usr/bin/debuginfod";
constexpr seconds kLimit{120};
constexpr char kFunction[] = "step";

class DebuginfodTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(kServer, X_OK) != 0) GTEST_SKIP() << "no " << kServer << ": package debuginfod";
    if (!network_.fault().empty()) GTEST_SKIP() << network_.fault();
    // The program as it is shipped, and its debug information elsewhere.
    fs::create_directory(scratch_ / "kept");
    const std::string program = traced_program("steady");
    command({"objcopy", "--only-keep-debug", program, scratch_ / "kept/steady.debug"});
    command({"objcopy", "--strip-all", program, scratch_ / "steady"});
    const Ending recorded = run(scratch_.path(),
                                {e2e::program("collectctl"), "run", "-o", scratch_ / "traces", "--",
                                 scratch_ / "steady", "pace", "200"},
                                {}, kLimit);
    ASSERT_TRUE(recorded.exited_with(0)) << recorded.errors;
    const auto directories = session_directories(scratch_ / "traces");
    ASSERT_EQ(directories.size(), 1u);
    session_ = directories[0];
    ASSERT_TRUE(symbol().is_null()) << "the stripped program has names: " << symbol();
  }
  void command(Arguments words) {
    words.insert(words.begin(), "/usr/bin/env");
    const Ending ending = run(scratch_.path(), words);
    ASSERT_TRUE(ending.exited_with(0)) << words[1] << ending.errors;
  }
  // Of kFunction in the manifest; null: it has no name there.
  json symbol() const {
    const json manifest = RecordedSession(session_).manifest();
    if (!manifest.contains("symbols")) return {};
    for (const json& symbol : manifest["symbols"]) {
      if (symbol["name"] == kFunction) return symbol;
    }
    return {};
  }
  std::string build_id() const {
    const json manifest = RecordedSession(session_).manifest();
    for (const json& module : manifest["modules"]) {
      if (module["path"] == scratch_ / "steady") return module["build_id"];
    }
    return {};
  }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  Ending symbolize(const Environment& environment, const Arguments& more = {"--debuginfod"}) {
    Arguments all = {e2e::program("collectctl"), "symbolize"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(session_);
    Environment own = {{"HOME", scratch_.path()},
                       {"XDG_CACHE_HOME", ""},
                       {"DEBUGINFOD_URLS", ""},
                       {"DEBUGINFOD_CACHE_PATH", ""},
                       {"DEBUGINFOD_PROGRESS", ""}};
    for (const auto& [name, value] : environment) own[name] = value;
    return run(scratch_.path(), all, own, kLimit);
  }
  // A server that has read the kept files.
  std::unique_ptr<ChildProcess> start_server() {
    auto server = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{kServer, "-p", std::to_string(port_), "-d", scratch_ / "index.sqlite", "-F",
                  scratch_ / "kept"},
        Environment{{"DEBUGINFOD_URLS", ""}, {"HOME", scratch_.path()}});
    EXPECT_TRUE(eventually(kLimit, [this] { return has_file(); })) << server->errors();
    return server;
  }

  fakes::OwnNetwork network_;
  Scratch scratch_;
  std::string session_;
  const uint16_t port_ = free_port();

 private:
  bool has_file() {
    const int fd = fakes::connect_to_loopback(port_);
    if (fd < 0) return false;
    const std::string request =
        "GET /buildid/" + build_id() + "/debuginfo HTTP/1.0\r\nHost: localhost\r\n\r\n";
    char status[13] = {};
    const bool answered = fakes::send_all(fd, request.data(), request.size()) &&
                          fakes::read_exactly(fd, status, sizeof status - 1);
    ::close(fd);
    return answered && std::string(status).ends_with(" 200");
  }
};

TEST_F(DebuginfodTest, NamesAndLinesOfAStrippedProgram) {
  const auto server = start_server();
  const Ending ending = symbolize({{"DEBUGINFOD_URLS", address()}});
  EXPECT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("build id " + build_id()));
  EXPECT_THAT(ending.output, HasSubstr(build_id() + "/debuginfo"));
  const json found = symbol();
  ASSERT_FALSE(found.is_null());
  EXPECT_TRUE(found.value("file", "").ends_with("tests/e2e/programs/steady.c")) << found;
  EXPECT_GT(found.value("line", 0), 0);
  // The client keeps what came: its cache serves as a directory of symbols, without a server.
  server->send_signal(SIGKILL);
  const Ending again =
      symbolize({}, {"--symbols", scratch_ / ".cache/debuginfod_client", "--json"});
  EXPECT_TRUE(again.exited_with(0)) << again.output << again.errors;
}

TEST_F(DebuginfodTest, NoServerHasIt) {
  const Ending ending = symbolize({{"DEBUGINFOD_URLS", address()}});  // no one listens there
  EXPECT_THAT(ending.errors, HasSubstr("no server has it, or none answered"));
  EXPECT_THAT(ending.output, HasSubstr("1 of 2 functions named")) << "what the program exports";
  EXPECT_TRUE(symbol().is_null());
}

// It does not say how much comes, so the client cannot refuse it beforehand.
TEST_F(DebuginfodTest, ServerThatSendsWithoutAnEndIsCutOff) {
  constexpr uint64_t kMostBytes = 1'000'000;
  constexpr uint64_t kGivesUpAt = 256u << 20;  // and the test fails
  uint16_t port = 0;
  const int listener = fakes::listen_on_loopback(&port, 16);
  std::atomic<uint64_t> sent = 0;
  std::thread server([&] {
    const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
    for (int fd = -1; (fd = ::accept(listener, nullptr, nullptr)) >= 0; ::close(fd)) {
      const std::string head =
          "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
          "Transfer-Encoding: chunked\r\n\r\n";
      char request[4096];
      if (::recv(fd, request, sizeof request, 0) <= 0) continue;
      bool takes = fakes::send_all(fd, head.data(), head.size());
      for (; takes && sent < kGivesUpAt; sent += chunk.size()) {
        takes = fakes::send_all(fd, chunk.data(), chunk.size());
      }
    }
  });
  const Ending ending = symbolize({{"DEBUGINFOD_URLS", "http://127.0.0.1:" + std::to_string(port)},
                                   {"DEBUGINFOD_MAXSIZE", std::to_string(kMostBytes)}});
  ::shutdown(listener, SHUT_RDWR);
  server.join();
  ::close(listener);
  EXPECT_THAT(ending.errors, HasSubstr("no server has it, or none answered"));
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, kGivesUpAt);
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / ".cache")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_LE(entry.file_size(), 4096u) << entry.path();
  }
}

TEST_F(DebuginfodTest, NoServerIsNamed) {
  const Ending ending = symbolize({});
  EXPECT_TRUE(ending.exited_with(2)) << ending.output << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("DEBUGINFOD_URLS names no server"));
  const Ending without = symbolize({{"DEBUGINFOD_URLS", address()}, {"PATH", "/nowhere"}});
  EXPECT_TRUE(without.exited_with(2)) << without.output << without.errors;
  EXPECT_THAT(without.errors, HasSubstr("package debuginfod"));
}

}  // namespace
}  // namespace collect::e2e
