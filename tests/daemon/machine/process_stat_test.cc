#include "daemon/machine/process_stat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace collect {
namespace {

TEST(ProcessStatTest, ProcessThatHasEndedWaitsForItsParent) {
  const auto own = read_process_stat(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(own);
  EXPECT_FALSE(own->has_ended());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto stat = read_process_stat(static_cast<uint32_t>(child));
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->has_ended());
  EXPECT_GE(stat->begin_ticks, own->begin_ticks);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(read_process_stat(static_cast<uint32_t>(child)));
}

// proc(5): the name is the program's own choice.
TEST(ProcessStatTest, NameMayHoldAnything) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("process_stat_" + std::to_string(::getpid()));
  std::ofstream(path) << "7 (a) Z 3 (\n) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n";
  const auto stat = read_process_stat(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->begin_ticks, 4711u);
}

// A thread that ends between the opening and the reading: its file cannot be read either.
TEST(ProcessStatTest, FileThatCannotBeReadIsNone) {
  EXPECT_FALSE(read_process_stat("/"));
}

TEST(ProcessStatTest, LineThatIsCutIsNone) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("process_stat_cut_" + std::to_string(::getpid()));
  std::ofstream(path) << "7 (a) S 1 2 3";
  EXPECT_FALSE(read_process_stat(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace collect
