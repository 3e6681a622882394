// A program with rights that the user who started it does not have: its environment is that
// user's. The agent reads none of it and stays off, linked in either way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/e2e/collector_process.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

struct Raise {
  const char* name;
  bool (*apply)(const std::string& path);  // false: not on this file system
  bool raises = true;
};

bool set_user(const std::string& path) {
  return chown(path.c_str(), 0, 0) == 0 && chmod(path.c_str(), 04755) == 0;
}

bool set_group(const std::string& path) {
  return chown(path.c_str(), 0, 0) == 0 && chmod(path.c_str(), 02755) == 0;
}

bool set_capability(const std::string& path) {
  vfs_cap_data data{};
  data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  data.data[0].permitted = 1u << CAP_DAC_READ_SEARCH;
  return chown(path.c_str(), 0, 0) == 0 && chmod(path.c_str(), 0755) == 0 &&
         setxattr(path.c_str(), "security.capability", &data, sizeof data, 0) == 0;
}

bool plain(const std::string& path) {
  return chown(path.c_str(), 0, 0) == 0 && chmod(path.c_str(), 0755) == 0;
}

constexpr Raise kRaises[] = {{"set-uid", set_user},
                             {"set-gid", set_group},
                             {"file capabilities", set_capability},
                             {"none", plain, false}};

// Starts it as a user without rights, with the environment that this user likes; its exit code, or
// -1. Its output goes to `output`.
int run_as_other_user(const std::string& path, const Environment& environment,
                      const std::string& output) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0) return -1;
  fakes::OtherUser user([&] {
    if (dup2(out, 1) < 0 || dup2(out, 2) < 0) return 126;
    char* arguments[] = {const_cast<char*>(path.c_str()), nullptr};
    execve(path.c_str(), arguments, pointers.data());
    return 127;
  });
  close(out);
  return user.wait();
}

class Privileged : public testing::TestWithParam<std::string> {
 protected:
  // Programs of the build tree may be out of no one's reach, and on a file system without set-uid.
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "only root makes set-uid programs of root";
    directory_ = "/tmp/redteam_privileged_" + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
    ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
    std::filesystem::create_directories(directory_ + "/open");
    ASSERT_EQ(chmod((directory_ + "/open").c_str(), 01777), 0);
    write_text_file(directory_ + "/secret", "only root reads this\n");
    ASSERT_EQ(chmod((directory_ + "/secret").c_str(), 0600), 0);
    const std::string source = traced_program(GetParam());
    if (!std::filesystem::exists(source)) GTEST_SKIP() << "not built: " << source;
  }
  void TearDown() override {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }

  std::string directory_;
};

TEST_P(Privileged, DoesNotReadTheUsersEnvironment) {
  size_t raised = 0;
  for (const Raise& raise : kRaises) {
    SCOPED_TRACE(raise.name);
    const std::string path = directory_ + "/program";
    std::filesystem::remove(path);
    std::filesystem::copy_file(traced_program(GetParam()), path);
    if (!raise.apply(path)) {
      std::printf("%s: not possible here\n", raise.name);
      continue;
    }
    fakes::ListeningSocket rogue;
    Environment environment = {{"COLLECT_CONNECT", rogue.address()},
                               {"COLLECT_TOKEN_FILE", directory_ + "/secret"},
                               {"COLLECT_SPOOL", directory_ + "/open"},
                               {"COLLECT_DETAIL", "on"},
                               {"COLLECT_LOG", "1"},
                               {"COLLECT_EXIT_FLUSH_MS", "2000"}};
    if (!raise.raises) {
      // The same program without raised rights does all of it: the test can fail.
      environment.erase("COLLECT_TOKEN_FILE");
      EXPECT_EQ(run_as_other_user(path, environment, directory_ + "/output"), 0);
      EXPECT_TRUE(rogue.accept(std::chrono::seconds(10)).is_open());
      EXPECT_FALSE(read_text_file(directory_ + "/output").empty());
      continue;
    }
    // 42: it is privileged, and the C API said so too.
    const int code = run_as_other_user(path, environment, directory_ + "/output");
    if (code == 0) {
      std::printf("%s: the file system does not raise rights\n", raise.name);
      continue;
    }
    ++raised;
    EXPECT_EQ(code, 42) << read_text_file(directory_ + "/output");
    EXPECT_FALSE(rogue.accept(std::chrono::milliseconds(0)).is_open()) << "it connected";
    EXPECT_EQ(read_text_file(directory_ + "/output"), "") << "COLLECT_LOG was read";
    EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/open")) << "COLLECT_SPOOL was read";
    // Listening: a socket would be a file here.
    environment.erase("COLLECT_CONNECT");
    environment["COLLECT_LISTEN"] = "unix:" + directory_ + "/open/agent.sock";
    EXPECT_EQ(run_as_other_user(path, environment, directory_ + "/output"), 42);
    EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/open")) << "COLLECT_LISTEN was read";
  }
  EXPECT_GT(raised, 0u) << "nothing here raises rights: /tmp is mounted nosuid?";
}

INSTANTIATE_TEST_SUITE_P(Agents, Privileged, testing::Values("privileged", "privileged_tls"));

}  // namespace
}  // namespace collect::e2e
