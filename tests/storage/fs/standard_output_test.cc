// What becomes of a program's standard output: all of it, or an exit code and a word on standard
// error. Each case is a child whose descriptor 1 is what the case says.
#include "storage/fs/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>
#include <iostream>
#include <string>

#include "storage/fs/standard_streams.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

constexpr size_t kBuffer = 1u << 16;
constexpr int kAsExpected = 42;  // exit code of a child that found everything right

std::string piece(size_t size, char first) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 23);
  return text;
}

// In the child: descriptor 1 is `fd` from now on.
void make_output(int fd) {
  if (::dup2(fd, STDOUT_FILENO) < 0) ::_exit(99);
}

TEST(StandardOutputTest, EveryByteOfEveryPieceArrives) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/output";
  std::string expected;
  const std::initializer_list<size_t> sizes = {1,       kBuffer - 1, 5, kBuffer, kBuffer + 1, 0, 3,
                                               kBuffer, kBuffer - 4, 4, 1,       100'000,     2};
  char first = 'A';
  for (const size_t size : sizes) {
    expected += piece(size, first);
    expected += '\n';
    ++first;
  }
  EXPECT_EXIT(
      {
        make_output(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
        std::ostream stream(std::cout.rdbuf());
        StandardOutput output(stream);
        char letter = 'A';
        for (const size_t size : sizes) {
          stream << piece(size, letter++);
          stream.put('\n');
        }
        std::exit(stream.good() ? output.finish("program", kAsExpected) : 98);
      },
      testing::ExitedWithCode(kAsExpected), "^$");
  const std::vector<uint8_t> bytes = read_file(path);
  EXPECT_TRUE(std::string(bytes.begin(), bytes.end()) == expected);
}

// A call of the kernel for each byte would make a listing take minutes; bytes that wait for more
// are written when that is asked for.
TEST(StandardOutputTest, SmallPiecesWaitUntilTheyAreFlushed) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe2(ends, O_NONBLOCK) != 0) std::exit(99);
        make_output(ends[1]);
        std::ostream stream(std::cout.rdbuf());
        std::streambuf* const before = stream.rdbuf();
        char came[16];
        {
          StandardOutput output(stream);
          stream << "abc";
          if (::read(ends[0], came, sizeof came) >= 0) std::exit(1);
          stream << "def" << std::flush;
          if (::read(ends[0], came, sizeof came) != 6) std::exit(2);
          if (std::string(came, 6) != "abcdef") std::exit(3);
        }
        std::exit(stream.rdbuf() == before ? kAsExpected : 4);
      },
      testing::ExitedWithCode(kAsExpected), "^$");
}

TEST(StandardOutputTest, FullDiskIsSaidAndTheProgramFails) {
  for (const size_t size : {size_t{1}, kBuffer + 1}) {
    for (const auto& [code, expected] : {std::pair{0, 1}, {3, 3}}) {
      EXPECT_EXIT(
          {
            make_output(::open("/dev/full", O_WRONLY));
            std::ostream stream(std::cout.rdbuf());
            StandardOutput output(stream);
            stream << piece(size, 'a') << std::flush;
            std::exit(stream.good() ? 98 : output.finish("program", code));
          },
          testing::ExitedWithCode(expected),
          "^program: cannot write standard output: No space left on device\n$");
    }
  }
}

TEST(StandardOutputTest, ReaderThatHasGoneIsNotReported) {
  EXPECT_EXIT(
      {
        ::signal(SIGPIPE, SIG_IGN);
        int ends[2];
        if (::pipe(ends) != 0) std::exit(99);
        ::close(ends[0]);
        make_output(ends[1]);
        std::ostream stream(std::cout.rdbuf());
        StandardOutput output(stream);
        stream << "text";
        std::exit(output.finish("program", 0) == 1 ? kAsExpected : 1);
      },
      testing::ExitedWithCode(kAsExpected), "^$");
}

// The output is always a prefix of what it should be: what comes after a failure would leave a
// hole.
TEST(StandardOutputTest, StopsWritingAfterAFailure) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe2(ends, O_NONBLOCK) != 0) std::exit(99);
        make_output(ends[1]);
        std::ostream stream(std::cout.rdbuf());
        StandardOutput output(stream);
        stream << piece(1'000'000, 'a');  // more than the pipe holds
        std::string came(1'000'000, '\0');
        ssize_t prefix = 0;
        while (true) {
          const ssize_t count = ::read(ends[0], came.data() + prefix, came.size() - prefix);
          if (count <= 0) break;
          prefix += count;
        }
        came.resize(static_cast<size_t>(prefix));
        if (came.empty() || came != piece(1'000'000, 'a').substr(0, came.size())) std::exit(2);
        stream.clear();
        stream << "behind it";
        stream << std::flush;
        stream.clear();
        stream.put('x');
        if (stream.good()) std::exit(5);
        stream.clear();
        stream << piece(kBuffer + 1, 'b');
        if (output.finish("program", 0) != 1) std::exit(3);
        char one = 0;
        std::exit(::read(ends[0], &one, 1) == 1 ? 4 : kAsExpected);
      },
      testing::ExitedWithCode(kAsExpected),
      "^program: cannot write standard output: Resource temporarily unavailable\n$");
}

// A program that was started without a standard output fails only if it has something to say.
TEST(StandardOutputTest, ClosedOutputIsAnErrorOnlyAfterWriting) {
  EXPECT_EXIT(
      {
        ::close(STDOUT_FILENO);
        StandardOutput output(std::cout);
        std::exit(output.finish("program", kAsExpected));
      },
      testing::ExitedWithCode(kAsExpected), "^$");
  EXPECT_EXIT(
      {
        ::close(STDOUT_FILENO);
        StandardOutput output(std::cout);
        std::cout << "text";
        std::exit(output.finish("program", 0));
      },
      testing::ExitedWithCode(1), "^program: cannot write standard output: Bad file descriptor\n$");
}

// Descriptors 0 to 2 that were closed are held by something that can be neither read nor written,
// so that no file of the program's gets their numbers; those that were open stay as they are.
TEST(StandardStreamsTest, ClosedStreamsAreHeldAndOthersAreLeftAlone) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    EXPECT_EXIT(
        {
          const int next = ::dup(STDOUT_FILENO);
          ::close(next);
          for (int fd = 0; fd < 3; ++fd) {
            if ((closed & 1u << fd) != 0) ::close(fd);
          }
          struct stat before[3];
          for (int fd = 0; fd < 3; ++fd) (void)::fstat(fd, &before[fd]);
          hold_standard_streams();
          for (int fd = 0; fd < 3; ++fd) {
            struct stat now{};
            if (::fstat(fd, &now) != 0) ::_exit(1);
            char byte = 0;
            if ((closed & 1u << fd) != 0) {
              if (!S_ISDIR(now.st_mode) || ::read(fd, &byte, 1) >= 0) ::_exit(2);
              if (::write(fd, &byte, 1) >= 0) ::_exit(3);
              if (::fcntl(fd, F_GETFD) != FD_CLOEXEC) ::_exit(4);
            } else if (now.st_ino != before[fd].st_ino || now.st_dev != before[fd].st_dev) {
              ::_exit(5);
            }
          }
          ::_exit(::fcntl(next, F_GETFD) < 0 ? kAsExpected : 6);  // nothing else stays open
        },
        testing::ExitedWithCode(kAsExpected), "")
        << closed;
  }
}

}  // namespace
}  // namespace collect::storage::test
