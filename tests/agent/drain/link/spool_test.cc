// The spool's file and its table: what was put in comes out, room is given back, and storage that
// refuses is distinguished from one that is full.
#include "agent/drain/link/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/agent/temp_folder.h"
#include "tests/child/forked_child.h"

namespace collect::agent {
namespace {

constexpr uint64_t kNowMs = 5000;

struct SpooledPage {
  PageHeader header{};
  std::vector<uint8_t> bytes;
};

SpooledPage make_page(uint64_t first_seq, uint32_t records, size_t bytes) {
  SpooledPage page;
  page.header.first_seq = first_seq;
  page.header.record_count = records;
  page.header.lost_total = first_seq * 3;
  for (size_t i = 0; i < bytes; ++i) {
    page.bytes.push_back(static_cast<uint8_t>(first_seq * 7 + i * 13 + i / 251));
  }
  return page;
}

class SpoolTest : public ::testing::Test {
 protected:
  ~SpoolTest() override { spool_.close(); }
  void open(uint32_t megabytes) {
    int error = 0;
    ASSERT_EQ(spool_.open(folder_.path().c_str(), megabytes, &error), nullptr) << error;
  }
  // That of its file.
  int descriptor() const {
    int fd = -1;
    for (int candidate = 3; candidate < 4096; ++candidate) {
      const std::string link = "/proc/self/fd/" + std::to_string(candidate);
      char target[512] = {};
      if (readlink(link.c_str(), target, sizeof target - 1) <= 0) continue;
      const std::string name = target;  // of the spool's folder, and without a name in it
      if (name.starts_with(folder_.path().string()) && name.ends_with("(deleted)")) fd = candidate;
    }
    return fd;
  }
  bool append(SpoolChain& chain, const SpooledPage& page) {
    return spool_.append(chain, page.header, page.bytes, kNowMs);
  }
  void expect_page(SpoolRef ref, const SpooledPage& page) {
    EXPECT_EQ(spool_.page(ref).first_seq, page.header.first_seq);
    EXPECT_EQ(spool_.page(ref).lost_total, page.header.lost_total);
    std::vector<uint8_t> read(spool_.sent_bytes(ref));
    ASSERT_TRUE(spool_.read(ref, read.data()));
    EXPECT_EQ(read, page.bytes) << "records from " << page.header.first_seq;
  }

  TempFolder folder_;
  Spool spool_;
};

TEST_F(SpoolTest, LimitBelowItsCapacityHolds) {
  open(1);
  EXPECT_EQ(spool_.limit(), uint64_t{1} << 20);
  spool_.set_limit(3000);
  SpoolChain chain{};
  EXPECT_TRUE(append(chain, make_page(0, 10, 2000)));
  EXPECT_TRUE(append(chain, make_page(10, 10, 1000)));
  EXPECT_FALSE(append(chain, make_page(20, 10, 1)));
  EXPECT_FALSE(spool_.takes(kNowMs));
  spool_.set_limit(0);
  EXPECT_FALSE(spool_.takes(kNowMs));
  expect_page(chain.first, make_page(0, 10, 2000));
  spool_.set_limit(uint64_t{1} << 40);
  EXPECT_EQ(spool_.limit(), spool_.capacity());
  EXPECT_TRUE(append(chain, make_page(20, 10, 1)));
  EXPECT_EQ(spool_.bytes(), 3001u);
}

TEST_F(SpoolTest, UsesAnUnnamedFile) {
  open(1);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_TRUE(spool_.is_open());
  struct stat file{};
  ASSERT_EQ(fstat(descriptor(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  EXPECT_EQ(file.st_nlink, 0u);
  EXPECT_EQ(fcntl(descriptor(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(spool_.capacity(), 1u << 20);
}

// Where the file system has no files without a name, one is made and unlinked. The child's exit
// code says what was wrong.
TEST_F(SpoolTest, UnlinksItsFileWhereUnnamedFilesAreUnsupported) {
  const child::Ending ending = child::forked([&] {
    constexpr uint32_t kFlag = O_TMPFILE & ~O_DIRECTORY;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kFlag, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return 1;
    }
    if (::open(folder_.path().c_str(), O_TMPFILE | O_RDWR, 0600) >= 0) return 2;
    Spool spools[2];  // at once: each has a file of its own
    for (Spool& spool : spools) {
      int error = 0;
      if (spool.open(folder_.path().c_str(), 1, &error) != nullptr) return 3;
    }
    if (!std::filesystem::is_empty(folder_.path())) return 4;
    struct stat file{};
    if (fstat(descriptor(), &file) != 0 || (file.st_mode & 0777) != 0600) return 5;
    if ((fcntl(descriptor(), F_GETFL) & O_ACCMODE) != O_RDWR) return 6;
    SpoolChain chains[2] = {};
    const SpooledPage pages[2] = {make_page(0, 1, 1000), make_page(7, 1, 1000)};
    for (int i = 0; i < 2; ++i) {
      if (!spools[i].append(chains[i], pages[i].header, pages[i].bytes, kNowMs)) return 7;
    }
    for (int i = 0; i < 2; ++i) {
      std::vector<uint8_t> read(1000);
      if (!spools[i].read(chains[i].first, read.data()) || read != pages[i].bytes) return 8;
    }
    return 0;
  });
  EXPECT_EQ(ending.describe(), "exit 0");
}

TEST_F(SpoolTest, FolderThatIsNotThere) {
  int error = 0;
  const std::string missing = folder_.path() / "missing";
  EXPECT_STREQ(spool_.open(missing.c_str(), 1, &error), "its file can't be made");
  EXPECT_EQ(error, ENOENT);
  EXPECT_FALSE(spool_.is_open());
  SpoolChain chain{};
  EXPECT_FALSE(append(chain, make_page(0, 1, 32)));
}

TEST_F(SpoolTest, EveryChainInItsOrder) {
  open(1);
  SpoolChain chains[3] = {};
  std::vector<SpooledPage> pages[3];
  for (uint64_t i = 0; i < 30; ++i) {
    pages[i % 3].push_back(make_page(i * 100, 100, 1000 + i));
    ASSERT_TRUE(append(chains[i % 3], pages[i % 3].back()));
  }
  for (int which = 0; which < 3; ++which) {
    EXPECT_EQ(chains[which].end_seq, pages[which].back().header.first_seq + 100);
    SpoolRef ref = chains[which].first;
    for (const SpooledPage& page : pages[which]) {
      ASSERT_NE(ref, 0u);
      expect_page(ref, page);
      ref = spool_.next(ref);
    }
    EXPECT_EQ(ref, 0u);
  }
  // From the page that holds a record, or the first one after it.
  spool_.rewind(chains[1], 450);
  EXPECT_EQ(spool_.page(chains[1].send).first_seq, 400u);
  spool_.rewind(chains[1], 500);
  EXPECT_EQ(spool_.page(chains[1].send).first_seq, 700u);
  spool_.rewind(chains[1], 10000);
  EXPECT_EQ(chains[1].send, 0u);
}

TEST_F(SpoolTest, RoomComesBackInTheOrderOfThePages) {
  open(1);
  constexpr size_t kBytes = 64 * 1024;
  SpoolChain early{};
  SpoolChain late{};
  ASSERT_TRUE(append(early, make_page(0, 1, kBytes)));
  for (uint64_t i = 0; i < 15; ++i) ASSERT_TRUE(append(late, make_page(i, 1, kBytes)));
  EXPECT_EQ(spool_.bytes(), spool_.capacity());
  EXPECT_FALSE(append(late, make_page(15, 1, 1)));
  EXPECT_FALSE(spool_.takes(kNowMs + 1000 * kSpoolRetryMs)) << "time alone makes no room";
  EXPECT_EQ(spool_.full_since_ms(), kNowMs);
  // What is behind a page that is held is no room yet.
  spool_.acknowledge(late, 5);
  EXPECT_EQ(spool_.bytes(), spool_.capacity() - 5 * kBytes);
  EXPECT_TRUE(spool_.takes(kNowMs)) << "it may be";
  EXPECT_FALSE(append(late, make_page(15, 1, 1)));
  spool_.acknowledge(early, 1);
  EXPECT_EQ(early.first, 0u);
  for (uint64_t i = 15; i < 21; ++i) ASSERT_TRUE(append(late, make_page(i, 1, kBytes)));
  EXPECT_EQ(spool_.full_since_ms(), 0u);
  EXPECT_FALSE(append(late, make_page(21, 1, 1)));
  for (SpoolRef ref = late.first; ref != 0; ref = spool_.next(ref)) {
    expect_page(ref, make_page(spool_.page(ref).first_seq, 1, kBytes));
  }
  spool_.release(late);
  EXPECT_TRUE(spool_.is_empty());
  EXPECT_EQ(spool_.bytes(), 0u);
  EXPECT_EQ(late.end_seq, 0u);
}

TEST_F(SpoolTest, TableIsBoundedToo) {
  open(1);
  SpoolChain chain{};
  const uint64_t places = (1u << 20) / kSpoolBytesPerPage;
  for (uint64_t i = 0; i < places; ++i) ASSERT_TRUE(append(chain, make_page(i, 1, 32)));
  EXPECT_FALSE(append(chain, make_page(places, 1, 32)));
  spool_.acknowledge(chain, 1);
  EXPECT_TRUE(append(chain, make_page(places, 1, 32)));
}

// The same pages come out as of a plain list, with any pages given back in between.
TEST_F(SpoolTest, AgreesWithAList) {
  open(1);
  constexpr int kChains = 5;
  std::mt19937 random(20261122);
  SpoolChain chains[kChains] = {};
  std::deque<SpooledPage> lists[kChains];
  uint64_t next_seq[kChains] = {};
  uint64_t refused = 0;
  for (int step = 0; step < 4000; ++step) {
    const size_t which = random() % kChains;
    SpoolChain& chain = chains[which];
    std::deque<SpooledPage>& list = lists[which];
    const auto records = static_cast<uint32_t>(1 + random() % 1000);
    if (random() % 3 != 0) {
      const SpooledPage page = make_page(next_seq[which], records, 1 + random() % (64 * 1024));
      if (append(chain, page)) {
        list.push_back(page);
        next_seq[which] += records;
      } else {
        ++refused;
      }
    } else if (!list.empty()) {
      const uint64_t stored = list[random() % list.size()].header.first_seq + random() % 1000;
      spool_.acknowledge(chain, stored);
      while (!list.empty() &&
             list.front().header.first_seq + list.front().header.record_count <= stored) {
        list.pop_front();
      }
    }
    SpoolRef ref = chain.first;
    for (const SpooledPage& page : list) {
      ASSERT_NE(ref, 0u);
      if (page.header.first_seq % 8 == 0) expect_page(ref, page);
      ref = spool_.next(ref);
    }
    ASSERT_EQ(ref, 0u);
  }
  EXPECT_GT(refused, 0u);
}

// A limit on the size of files acts as a disk that is full.
TEST_F(SpoolTest, StorageThatRefusesIsAskedAgainLater) {
  open(4);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  SpoolChain chain{};
  const SpooledPage first = make_page(0, 1, 60'000);
  const SpooledPage second = make_page(1, 1, 60'000);
  EXPECT_TRUE(append(chain, first));
  EXPECT_FALSE(append(chain, second)) << "written in part";
  EXPECT_FALSE(spool_.takes(kNowMs + kSpoolRetryMs - 1));
  EXPECT_EQ(spool_.full_since_ms(), kNowMs);
  EXPECT_TRUE(spool_.takes(kNowMs + kSpoolRetryMs));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(append(chain, second));
  EXPECT_EQ(spool_.full_since_ms(), 0u);
  expect_page(chain.first, first);
  expect_page(chain.last, second);
}

TEST_F(SpoolTest, StrangersFileUnderItsNumberIsLeftAlone) {
  open(1);
  SpoolChain chain{};
  ASSERT_TRUE(append(chain, make_page(0, 1, 1000)));
  // The program closes what it does not know, and opens something else.
  const int fd = descriptor();
  ASSERT_GE(fd, 0);
  const std::string path = folder_.path() / "stranger";
  const int stranger = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(stranger, 0);
  ASSERT_EQ(dup2(stranger, fd), fd);
  EXPECT_FALSE(append(chain, make_page(1, 1, 1000)));
  uint8_t bytes[1000];
  EXPECT_FALSE(spool_.read(chain.first, bytes));
  spool_.close();
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  EXPECT_EQ(fcntl(fd, F_GETFD), 0) << "it is not ours to close";
  close(fd);
  close(stranger);
}

}  // namespace
}  // namespace collect::agent
