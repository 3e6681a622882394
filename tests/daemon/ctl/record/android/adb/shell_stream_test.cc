// The streams of a phone in pieces of any size: shell,v2 packets, and "sync:" in both directions.
// What the phone says is written out here, as the protocol of adb has it.
#include "daemon/ctl/record/android/adb/shell_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "daemon/ctl/record/android/adb/file_pull.h"
#include "daemon/ctl/record/android/adb/file_push.h"
#include "daemon/ctl/record/android/adb/sync_header.h"

namespace collect::ctl {
namespace {

using std::chrono::seconds;

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
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
    std::filesystem::remove_all(directory_);
  }

  attach::Socket socket() {
    return attach::Socket(io_, asio::generic::stream_protocol(AF_UNIX, 0),
                          std::exchange(ends_[0], -1));
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
  // For another stream of the same test.
  void connect_again() {
    if (ends_[1] >= 0) hang_up();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
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
  // Works meanwhile: so much may not fit into a socket.
  std::string heard(size_t bytes) {
    std::string text(bytes, '\0');
    size_t got = 0;
    EXPECT_TRUE(wait([&] {
      const ssize_t more = recv(ends_[1], text.data() + got, bytes - got, MSG_DONTWAIT);
      if (more > 0) got += static_cast<size_t>(more);
      return got == bytes;
    })) << got;
    text.resize(got);
    return text;
  }
  // Nothing more is on its way, and the stream is there.
  bool is_silent() {
    io_.restart();
    io_.poll();
    char byte = 0;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  // The other side has closed it; what it said before is passed over.
  bool is_closed() {
    return wait([&] {
      char bytes[4096];
      ssize_t got = 0;
      do got = recv(ends_[1], bytes, sizeof bytes, MSG_DONTWAIT);
      while (got > 0);
      return got == 0 || errno == ECONNRESET;
    });
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
    Said said;
    const auto stream = follow(socket(), said);
    say(kConversation, bytes);
    ASSERT_TRUE(wait([&] { return said.end.has_value(); })) << bytes;
    EXPECT_TRUE(said.end->ok());
    EXPECT_EQ(said.text, "1:one 2:oops 1: 1:two 3:\x07 ") << "in pieces of " << bytes;
    EXPECT_TRUE(is_closed());
    connect_again();
  }
}

TEST_F(PhoneStream, ShellWithoutAnExitCodeIsALostPhone) {
  Said said;
  const auto stream = follow(socket(), said);
  say(packet(1, "one") + "\x01\x05", 3);
  hang_up();
  ASSERT_TRUE(wait([&] { return said.end.has_value(); }));
  EXPECT_EQ(said.end->code(), Code::kUnavailable);
  EXPECT_EQ(said.text, "1:one ");
}

TEST_F(PhoneStream, InvalidPacketEndsTheShell) {
  Said said;
  const auto stream = follow(socket(), said);
  say("\x01\xFF\xFF\xFF\xFF", 5);
  ASSERT_TRUE(wait([&] { return said.end.has_value(); }));
  EXPECT_EQ(said.end->code(), Code::kDamaged);
}

TEST_F(PhoneStream, IsSilentAfterClose) {
  Said said;
  const auto stream = follow(socket(), said);
  stream->close();
  (void)send(ends_[1], kConversation.data(), kConversation.size(), MSG_NOSIGNAL);
  io_.restart();
  io_.poll();
  EXPECT_EQ(said.text, "");
  EXPECT_FALSE(said.end.has_value());
  EXPECT_TRUE(is_closed());
}

// Also what came together with the packet at which it was closed.
TEST_F(PhoneStream, OnePacketMayBeTheLastThatIsHeard) {
  std::string text;
  bool has_ended = false;
  std::shared_ptr<ShellStream> stream = ShellStream::start(
      socket(),
      [&](const attach::ShellPacket& packet) {
        text += packet.data;
        stream->close();
      },
      [&](const Status&) { has_ended = true; });
  say(kConversation, 1000);
  EXPECT_TRUE(is_closed());
  EXPECT_EQ(text, "one");
  EXPECT_FALSE(has_ended);
}

TEST_F(PhoneStream, StreamThatGoesTakesItsConnectionAlong) {
  Said said;
  auto stream = follow(socket(), said);
  stream.reset();
  EXPECT_TRUE(is_closed());
  EXPECT_EQ(said.text, "");
  EXPECT_FALSE(said.end.has_value());
}

TEST_F(PhoneStream, InputGoesInPacketsAndIsClosed) {
  Said said;
  const auto stream = follow(socket(), said);
  stream->send_input("hello");
  EXPECT_EQ(heard(15), packet(0, "hello") + packet(4, ""));
  EXPECT_TRUE(is_silent());
}

TEST_F(PhoneStream, InputOfAnyLength) {
  const std::string most(16'384, 'm');  // of a packet
  for (const auto& [input, packets] :
       {std::pair(std::string(), packet(4, "")), std::pair(most, packet(0, most) + packet(4, "")),
        std::pair(most + "x", packet(0, most) + packet(0, "x") + packet(4, ""))}) {
    Said said;
    const auto stream = follow(socket(), said);
    stream->send_input(input);
    EXPECT_EQ(heard(packets.size()), packets) << input.size();
    EXPECT_TRUE(is_silent());
    connect_again();
  }
}

TEST_F(PhoneStream, PulledFileInPieces) {
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
  EXPECT_TRUE(is_closed());
}

class BadPull : public PhoneStream {
 protected:
  Status ends_with(const std::string& bytes, bool then_hang_up = false, uint64_t most = 100,
                   const std::string& into = "") {
    if (ends_[1] < 0) connect_again();
    const auto pull = FilePull::start(socket(), "/x", into.empty() ? file("pulled") : into, most);
    EXPECT_TRUE(pull.ok());
    say(bytes, 4'096);
    if (then_hang_up) hang_up();
    EXPECT_TRUE(wait([&] { return (*pull)->result().has_value(); }));
    Status status = (*pull)->result().value_or(Status());
    EXPECT_TRUE(then_hang_up || is_closed());
    if (ends_[1] >= 0) hang_up();
    return status;
  }
};

TEST_F(BadPull, Refusals) {
  const Status refused = ends_with(piece("FAIL", "open failed: Permission denied"));
  EXPECT_EQ(refused.code(), Code::kIo);
  EXPECT_EQ(refused.error().message, "open failed: Permission denied");
  for (const std::string& none :
       {std::string("what is this"), piece("OKAY", "abc"), "DATA" + u32(kSyncPieceBytes + 1)}) {
    const Status damaged = ends_with(none, false, 1 << 20);
    EXPECT_EQ(damaged.code(), Code::kDamaged);
    EXPECT_EQ(damaged.error().message, "neither a piece of a file nor its end came");
  }
  EXPECT_EQ(ends_with("DATA" + u32(101)).code(), Code::kLimit);
  EXPECT_EQ(ends_with(piece("DATA", std::string(60, 'x')) + "DATA" + u32(41)).code(), Code::kLimit);
  EXPECT_TRUE(ends_with(piece("DATA", std::string(60, 'x')) + piece("DATA", std::string(40, 'x')) +
                        "DONE" + u32(0))
                  .ok());
}

TEST_F(BadPull, PhoneThatGoesInTheMiddle) {
  const std::string ended = "the connection to the device ended after ";
  for (const auto& [said, bytes] :
       {std::pair(std::string(), "0"), std::pair(piece("DATA", "abc") + "DA", "3"),
        std::pair(piece("DATA", "abc") + "DATA" + u32(10) + "xyz", "3")}) {
    const Status gone = ends_with(said, true);
    EXPECT_EQ(gone.code(), Code::kUnavailable);
    EXPECT_EQ(gone.error().message, ended + bytes + " bytes");
  }
  // It went before anything could be asked.
  connect_again();
  hang_up();
  const auto pull = FilePull::start(socket(), "/x", file("pulled"), 100);
  ASSERT_TRUE(pull.ok());
  ASSERT_TRUE(wait([&] { return (*pull)->result().has_value(); }));
  EXPECT_EQ((*pull)->result()->code(), Code::kUnavailable);
}

TEST_F(BadPull, ReasonIsKeptAsFarAsItCame) {
  const std::string most(kMaxSyncMessageBytes, 'y');
  EXPECT_EQ(ends_with("FAIL" + u32(0xFFFFFFFF) + most + "z").error().message, most);
  EXPECT_EQ(ends_with("FAIL" + u32(100) + "abc", true).error().message, "abc");
}

// Where there is no room here.
TEST_F(BadPull, ReportsFilesItCannotWrite) {
  for (const size_t bytes : {1, 60'000}) {
    const Status full = ends_with(piece("DATA", std::string(bytes, 'x')) + "DONE" + u32(0), false,
                                  1 << 20, "/dev/full");
    EXPECT_EQ(full.code(), Code::kIo) << bytes;
    EXPECT_EQ(full.error().message, "/dev/full: can't be written") << bytes;
  }
  // The first reason counts.
  EXPECT_EQ(ends_with(piece("DATA", "x") + piece("FAIL", "no more"), false, 100, "/dev/full")
                .error()
                .message,
            "no more");
}

TEST_F(PhoneStream, PullThatCantBeWrittenIsRefusedAtOnce) {
  EXPECT_EQ(FilePull::start(socket(), "/x", directory_ + "/no/such/folder", 1).code(), Code::kIo);
}

TEST_F(PhoneStream, PushedFileAndItsAnswerInPieces) {
  std::ofstream(file("pushed")) << "content";
  const auto push = FilePush::start(socket(), file("pushed"), "/data/local/tmp/x", 0100644);
  ASSERT_TRUE(push.ok());
  io_.poll();
  const std::string name = "/data/local/tmp/x,33188";
  EXPECT_EQ(heard(8 + name.size()), piece("SEND", name));
  EXPECT_EQ(heard(15), piece("DATA", "content"));
  EXPECT_EQ((*push)->sent(), 7u);
  EXPECT_EQ(heard(8).substr(0, 4), "DONE");
  EXPECT_TRUE(is_silent()) << "it waits for the answer";
  EXPECT_FALSE((*push)->result().has_value());
  say("OKAY" + u32(0), 3);
  ASSERT_TRUE(wait([&] { return (*push)->result().has_value(); }));
  EXPECT_TRUE((*push)->result()->ok());
  EXPECT_TRUE(is_closed());
}

// The last bytes of it are when it was written, in seconds.
TEST_F(PhoneStream, PushedFileIsOfNow) {
  std::ofstream(file("pushed")) << "";
  const auto before = static_cast<uint32_t>(std::time(nullptr));
  const auto push = FilePush::start(socket(), file("pushed"), "x", 0100600);
  ASSERT_TRUE(push.ok());
  EXPECT_EQ(heard(15), piece("SEND", "x,33152"));
  const std::string done = heard(8);
  ASSERT_EQ(done.substr(0, 4), "DONE");
  uint32_t when = 0;
  for (size_t i = 0; i < 4; ++i) {
    when |= static_cast<uint32_t>(static_cast<uint8_t>(done[4 + i])) << (8 * i);
  }
  EXPECT_GE(when, before);
  EXPECT_LE(when, static_cast<uint32_t>(std::time(nullptr)));
}

TEST_F(PhoneStream, PieceOfAPushHasSixtyFourKib) {
  const std::string most(65'536, 'p');
  std::ofstream(file("pushed")) << most << "x";
  const auto push = FilePush::start(socket(), file("pushed"), "x", 0100600);
  ASSERT_TRUE(push.ok());
  EXPECT_EQ((*push)->total(), 65'537u);
  const std::string pieces = piece("SEND", "x,33152") + piece("DATA", most) + piece("DATA", "x");
  EXPECT_EQ(heard(pieces.size()), pieces);
}

// Someone builds it again meanwhile.
TEST_F(PhoneStream, PushedFileThatShrinksIsNotWhole) {
  std::ofstream(file("pushed")) << std::string(1'000, 'x');
  const auto push = FilePush::start(socket(), file("pushed"), "x", 0100600);
  ASSERT_TRUE(push.ok());
  std::filesystem::resize_file(file("pushed"), 100);
  ASSERT_TRUE(wait([&] { return (*push)->result().has_value(); }));
  EXPECT_EQ((*push)->result()->code(), Code::kIo);
  EXPECT_EQ((*push)->result()->error().message, file("pushed") + ": can't be read at 100");
  EXPECT_TRUE(is_closed());
}

TEST_F(PhoneStream, PushIsAnsweredByOkayOrFail) {
  std::ofstream(file("pushed")) << "content";
  const auto answered = [this](const std::string& bytes, bool then_hang_up) {
    const auto push = FilePush::start(socket(), file("pushed"), "x", 0100600);
    EXPECT_TRUE(push.ok());
    say(bytes, 4'096);
    if (then_hang_up) hang_up();
    EXPECT_TRUE(wait([&] { return (*push)->result().has_value(); }));
    Status status = (*push)->result().value_or(Status());
    connect_again();
    return status;
  };
  const Status other = answered("DATA" + u32(0), false);
  EXPECT_EQ(other.code(), Code::kDamaged);
  EXPECT_EQ(other.error().message, "neither OKAY nor FAIL was received");
  const std::string most(kMaxSyncMessageBytes, 'y');
  EXPECT_EQ(answered("FAIL" + u32(0xFFFFFFFF) + most + "z", false).error().message, most);
  EXPECT_EQ(answered("FAIL" + u32(100) + "abc", true).error().message, "abc");
  const Status gone = answered("OKA", true);
  EXPECT_EQ(gone.code(), Code::kUnavailable);
}

TEST_F(PhoneStream, PushThatIsRefusedInTheMiddleSaysWhy) {
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
