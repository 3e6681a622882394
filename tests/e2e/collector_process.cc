#include "tests/e2e/collector_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace collect::e2e {
namespace {

constexpr seconds kReadyLimit{20};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

std::string program(const std::string& name) {
  return std::string(E2E_BIN) + "/" + name;
}
std::string traced_program(const std::string& name) {
  return std::string(E2E_PROGRAMS) + "/" + name;
}
std::string short_documents(const Scratch& scratch) {
  const std::string folder = scratch / "documents";
  std::error_code not_there;  // says the program
  std::filesystem::create_directories(folder);
  for (int i = 0; i < 6; ++i) {
    std::filesystem::copy_file("/usr/share/iso-codes/json/iso_3166-3.json",
                               folder + "/" + std::to_string(i) + ".json",
                               std::filesystem::copy_options::overwrite_existing, not_there);
  }
  return folder;
}
std::string tls_agent_library() {
  const std::string path = std::string(E2E_LIB) + "/libcollect_agent_tls.so";
  return std::filesystem::exists(path) ? path : "";
}

std::string deploy_script(const std::string& name) {
  return std::string(E2E_DEPLOY) + "/" + name;
}

std::string agent_library() {
  return std::string(E2E_LIB) + "/libcollect_agent.so";
}

std::string reference_directory() {
  const char* directory = std::getenv("COLLECT_REFERENCE");
  if (directory == nullptr || !std::filesystem::is_directory(directory)) return {};
  return directory;
}

// A port below those that the kernel gives to connections, so that no dialling program takes it
// between here and the listener's start, and with a file locked until this process ends, so that no
// other test is given it.
uint16_t free_port() {
  constexpr uint16_t kFirst = 20000;
  constexpr uint16_t kCount = 12000;
  static const std::string locks =
      std::filesystem::temp_directory_path() / ("collect_test_ports_" + std::to_string(getuid()));
  static uint32_t next = static_cast<uint32_t>(getpid()) * 37;
  mkdir(locks.c_str(), 01777);
  for (int tries = 0; tries < kCount; ++tries) {
    const auto port = static_cast<uint16_t>(kFirst + next++ % kCount);
    const int lock = open((locks + "/" + std::to_string(port)).c_str(),
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) continue;
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    const bool ours = flock(lock, LOCK_EX | LOCK_NB) == 0 &&
                      bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    if (ours) return port;
    close(lock);
  }
  ADD_FAILURE() << "no port is free between " << kFirst << " and " << kFirst + kCount;
  return 0;
}

bool answers(uint16_t port) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const int outcome = connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  close(client);
  return outcome == 0;
}

CollectorProcess::CollectorProcess(const Scratch& scratch, const Arguments& more,
                                   const std::string& root, Arguments launcher,
                                   const std::string& daemon)
    : scratch_(scratch.path()),
      root_(root.empty() ? scratch / "root" : root),
      more_(more),
      launcher_(std::move(launcher)),
      daemon_(daemon),
      ingest_port_(free_port()),
      control_port_(free_port()) {
  std::filesystem::create_directories(root_);
  start();
}

void CollectorProcess::start() {
  Arguments command = launcher_;
  command.insert(command.end(),
                 {daemon_, "--root", root_, "--ingest", ingest(), "--control", control()});
  // The user who runs the tests may have phones.
  for (const char* source : {"--adb", "--usbmux"}) {
    if (std::find(more_.begin(), more_.end(), source) != more_.end()) continue;
    command.insert(command.end(), {source, "off"});
  }
  command.insert(command.end(), more_.begin(), more_.end());
  process_ = std::make_unique<ChildProcess>(scratch_, command);
  const bool ready = eventually(kReadyLimit, [this] {
    return !process_->running() || (answers(ingest_port_) && answers(control_port_));
  });
  EXPECT_TRUE(ready && process_->running())
      << "collectord is not ready: " << process_->errors() << process_->output();
}

void CollectorProcess::start_again() {
  start();
}

const Ending& CollectorProcess::stop(seconds limit) {
  process_->send_signal(SIGTERM);
  return process_->wait(limit);
}

CollectorProcess::~CollectorProcess() {
  const bool was_running = process_->running();
  const Ending& ending = stop();
  if (!was_running) return;
  EXPECT_TRUE(ending.exited_with(0)) << "collectord: " << ending.describe() << "\n"
                                     << ending.errors;
}

Environment CollectorProcess::tracing(const std::string& full_policy, int atf_version) const {
  return {{"LD_PRELOAD", agent_library()},
          {"COLLECT_CONNECT", ingest()},
          {"COLLECT_FULL", full_policy},
          {"COLLECT_ATF_VERSION", std::to_string(atf_version)}};
}

Ending CollectorProcess::ctl(const Arguments& arguments, seconds limit) const {
  Arguments command = {program("collectctl"), "--control", control()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(scratch_, command, {}, limit);
}

}  // namespace collect::e2e
