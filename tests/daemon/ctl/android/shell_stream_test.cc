// The streams of a phone in pieces of any size: shell,v2 packets, and "sync:" in both directions.
// What the phone says is written out here, as the protocol of adb has it.
#include "daemon/ctl/android/shell_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/write.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/ctl/android/file_pull.h"
#include "daemon/ctl/android/file_push.h"
#include "daemon/ctl/android/sync_header.h"

namespace collect::ctl {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr seconds kSoon{20};

std::string u32(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string packet(char stream, const std::string& data) {
  return stream + u32(static_cast<uint32_t>(data.size())) + data;
}

std::string piece(const std::string& word, const std::string& data) {
  return word + u32(static_cast<uint32_t>(data.size())) + data;
}

// A socket whose other end the test plays.
class PhoneStream : public testing::Test {
 protected:
  PhoneStream() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    char name[] = "/tmp/streamXXXXXX";
    directory_ = mkdtemp(name);
  }
  ~PhoneStream() override {
    if (ends_[1] >= 0) close(ends_[1]);
    std::filesystem::remove_all(directory_);
  }

  attach::Socket socket() {
    return attach::Socket(io_, asio::generic::stream_protocol(AF_UNIX, 0), ends_[0]);
  }
  // One piece after the other; each is taken before the next is sent.
  void say(const std::string& bytes, size_t piece_bytes) {
    for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const std::string part = bytes.substr(at, piece_bytes);
      ASSERT_EQ(send(ends_[1], part.data(), part.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(part.size()));
      io_.restart();
      io_.poll();
    }
  }
  void hang_up() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  template <class Condition>
  bool wait(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  std::string heard(size_t bytes) {
    std::string text(bytes, '\0');
    EXPECT_EQ(recv(ends_[1], text.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return text;
  }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  asio::io_context io_;
  int ends_[2] = {-1, -1};
  std::string directory_;
};

struct Said {
  std::string text;
  std::optional<Status> end;
};

std::shared_ptr<ShellStream> follow(attach::Socket socket, Said& said) {
  return ShellStream::start(
      std::move(socket),
      [&said](const attach::ShellPacket& packet) {
        said.text += std::to_string(static_cast<int>(packet.stream)) + ":" + packet.data + " ";
      },
      [&said](const Status& status) { said.end = status; });
}

const std::string kConversation =
    packet(1, "one") + packet(2, "oops") + packet(1, "") + packet(1, "two") + packet(3, "\x07");

TEST_F(PhoneStream, ShellPacketsComeInPiecesOfAnySize) {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{5}, size_t{6}, size_t{1000}}) {
    if (ends_[1] < 0) {
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    }
    Said said;
    const auto stream = follow(socket(), said);
    say(kConversation, bytes);
    ASSERT_TRUE(wait([&] { return said.end.has_value(); })) << bytes;
    EXPECT_TRUE(said.end->ok());
    EXPECT_EQ(said.text, "1:one 2:oops 1: 1:two 3:\x07 ") << "in pieces of " << bytes;
    hang_up();
  }
}

TEST_F(PhoneStream, AShellThatEndsWithoutACodeIsAPhoneThatWent) {
  Said said;
  const auto stream = follow(socket(), said);
  say(packet(1, "one") + "\x01\x05", 3);
  hang_up();
  ASSERT_TRUE(wait([&] { return said.end.has_value(); }));
  EXPECT_EQ(said.end->code(), Code::kUnavailable);
  EXPECT_EQ(said.text, "1:one ");
}

TEST_F(PhoneStream, WhatIsNoPacketEndsTheShell) {
  Said said;
  const auto stream = follow(socket(), said);
  say("\x01\xFF\xFF\xFF\xFF", 5);
  ASSERT_TRUE(wait([&] { return said.end.has_value(); }));
  EXPECT_EQ(said.end->code(), Code::kDamaged);
}

TEST_F(PhoneStream, NothingIsHeardAfterClose) {
  Said said;
  const auto stream = follow(socket(), said);
  stream->close();
  (void)send(ends_[1], kConversation.data(), kConversation.size(), MSG_NOSIGNAL);
  io_.restart();
  io_.poll();
  EXPECT_EQ(said.text, "");
  EXPECT_FALSE(said.end.has_value());
}

TEST_F(PhoneStream, InputGoesInPacketsAndIsClosed) {
  Said said;
  const auto stream = follow(socket(), said);
  stream->send_input("hello");
  io_.restart();
  io_.poll();
  EXPECT_EQ(heard(15), packet(0, "hello") + packet(4, ""));
}

TEST_F(PhoneStream, APulledFileInPieces) {
  const std::string remote = "/data/app/x/lib/arm64/libapp.so";
  const std::string content(70'000, 'c');
  const auto pull = FilePull::start(socket(), remote, file("pulled"), 1 << 20);
  ASSERT_TRUE(pull.ok());
  io_.poll();
  EXPECT_EQ(heard(8 + remote.size()), piece("RECV", remote));
  say(piece("DATA", content.substr(0, 65'536)) + piece("DATA", "") +
          piece("DATA", content.substr(65'536)) + "DONE" + u32(0),
      1'999);
  ASSERT_TRUE(wait([&] { return (*pull)->result().has_value(); }));
  EXPECT_TRUE((*pull)->result()->ok()) << (*pull)->result()->error().message;
  std::ifstream in(file("pulled"), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), content);
}

class BadPull : public PhoneStream {
 protected:
  Status ends_with(const std::string& bytes, bool then_hang_up = false, uint64_t most = 100) {
    if (ends_[1] < 0) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    }
    const auto pull = FilePull::start(socket(), "/x", file("pulled"), most);
    EXPECT_TRUE(pull.ok());
    say(bytes, 7);
    if (then_hang_up) hang_up();
    EXPECT_TRUE(wait([&] { return (*pull)->result().has_value(); }));
    Status status = (*pull)->result().value_or(Status());
    if (ends_[1] >= 0) hang_up();
    return status;
  }
};

TEST_F(BadPull, Refusals) {
  const Status refused = ends_with(piece("FAIL", "open failed: Permission denied"));
  EXPECT_EQ(refused.code(), Code::kIo);
  EXPECT_THAT(refused.error().message, HasSubstr("Permission denied"));
  EXPECT_EQ(ends_with("what is this").code(), Code::kDamaged);
  EXPECT_EQ(ends_with("DATA" + u32(kSyncPieceBytes + 1)).code(), Code::kDamaged);
  EXPECT_EQ(ends_with("DATA" + u32(101)).code(), Code::kLimit);
  EXPECT_EQ(ends_with(piece("DATA", std::string(60, 'x')) + "DATA" + u32(41)).code(), Code::kLimit);
  EXPECT_EQ(ends_with(piece("DATA", "abc") + "DA", true).code(), Code::kUnavailable);
  EXPECT_EQ(ends_with("", true).code(), Code::kUnavailable);
  // A reason that is longer than anybody reads.
  const Status long_one =
      ends_with("FAIL" + u32(0xFFFFFFFF) + std::string(kMaxSyncMessageBytes, 'y'), true);
  EXPECT_EQ(long_one.error().message.size(), kMaxSyncMessageBytes);
}

TEST_F(PhoneStream, APullThatCantBeWrittenIsRefusedAtOnce) {
  EXPECT_EQ(FilePull::start(socket(), "/x", directory_ + "/no/such/folder", 1).code(), Code::kIo);
}

TEST_F(PhoneStream, APushedFileAndItsAnswerInPieces) {
  std::ofstream(file("pushed")) << "content";
  const auto push = FilePush::start(socket(), file("pushed"), "/data/local/tmp/x", 0100644);
  ASSERT_TRUE(push.ok());
  io_.poll();
  const std::string name = "/data/local/tmp/x,33188";
  EXPECT_EQ(heard(8 + name.size()), piece("SEND", name));
  ASSERT_TRUE(wait([&] { return (*push)->sent() == 7; }));
  EXPECT_EQ(heard(15), piece("DATA", "content"));
  ASSERT_TRUE(wait([&] {
    char byte = 0;
    return recv(ends_[1], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }));
  EXPECT_EQ(heard(8).substr(0, 4), "DONE");
  say("OKAY" + u32(0), 3);
  ASSERT_TRUE(wait([&] { return (*push)->result().has_value(); }));
  EXPECT_TRUE((*push)->result()->ok());
}

TEST_F(PhoneStream, APushThatIsRefusedInTheMiddleSaysWhy) {
  std::ofstream(file("pushed")) << std::string(10 << 20, 'x');  // more than a socket takes
  const auto push = FilePush::start(socket(), file("pushed"), "/data/local/tmp/x", 0100644);
  ASSERT_TRUE(push.ok());
  say(piece("FAIL", "write failed: No space left on device"), 5);
  ASSERT_TRUE(wait([&] { return (*push)->result().has_value(); }));
  EXPECT_EQ((*push)->result()->code(), Code::kNoSpace);
  EXPECT_LT((*push)->sent(), (*push)->total());
}

}  // namespace
}  // namespace collect::ctl
