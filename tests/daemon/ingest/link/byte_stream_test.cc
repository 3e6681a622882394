// One TLS connection driven by hand: reads and writes that have to wait, ends, and failed
// handshakes.
#include "daemon/ingest/link/byte_stream.h"

#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include <asio/ip/tcp.hpp>
#include <filesystem>
#include <future>
#include <thread>

#include "tests/daemon/ingest/io_loop.h"
#include "tests/fakes/tls_client.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using fakes::TlsClient;
using testing::HasSubstr;

std::vector<uint8_t> pattern(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint32_t number = 1;
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>((number = number * 1664525 + 1013904223) >> 24);
  return bytes;
}

class ByteStreamTest : public testing::Test {
 protected:
  ByteStreamTest() : directory_(make_directory()), authority_(directory_, "ca") {
    server_ = authority_.issue("server");
    load("");
    acceptor_.open(asio::ip::tcp::v4());
    acceptor_.bind({asio::ip::address_v4::loopback(), 0});
    // Less than is written at once, so that writing has to wait.
    acceptor_.set_option(asio::socket_base::send_buffer_size(8192));
    acceptor_.listen();
  }
  ~ByteStreamTest() override { std::filesystem::remove_all(directory_); }

  static std::string make_directory() {
    std::string pattern = std::filesystem::temp_directory_path() / "byte_stream_XXXXXX";
    return ::mkdtemp(pattern.data());
  }
  void load(const std::string& client_ca) {
    auto loaded = TlsContext::load({server_.certificate, server_.key, client_ca});
    ASSERT_TRUE(loaded.ok()) << to_string(loaded.error());
    context_ = std::move(loaded).value();
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  // Accepts one connection, and shakes hands; what the handshake has to say.
  std::string serve() {
    asio::generic::stream_protocol::socket socket(loop_.io());
    asio::ip::tcp::socket accepted(loop_.io());
    acceptor_.accept(accepted);
    const auto protocol = accepted.local_endpoint().protocol();
    socket.assign(asio::generic::stream_protocol(protocol.family(), protocol.protocol()),
                  accepted.release());
    TlsSession session = context_->accept_on(socket.native_handle());
    stream_ = std::make_unique<ByteStream>(std::move(socket), std::move(session));
    EXPECT_TRUE(stream_->is_tls());
    EXPECT_FALSE(stream_->is_ready());
    std::optional<std::string> fault;
    stream_->handshake([&](const std::string& text) { fault = text; });
    EXPECT_TRUE(loop_.run_until([&] { return fault.has_value(); }));
    return fault.value_or("no end");
  }
  // What comes until the stream ends, and how it ends.
  std::pair<std::vector<uint8_t>, std::error_code> read_all() {
    std::vector<uint8_t> all;
    std::vector<uint8_t> chunk(100'000);
    std::error_code ended;
    while (!ended) {
      std::optional<size_t> came;
      stream_->async_read_some(asio::buffer(chunk),
                               [&](const std::error_code& error, size_t count) {
                                 ended = error;
                                 came = count;
                               });
      if (!loop_.run_until([&] { return came.has_value(); })) break;
      all.insert(all.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(*came));
    }
    return {all, ended};
  }
  fakes::TlsClientOptions client(fakes::CertifiedKey own = {}) const {
    return {authority_.certificate(), std::move(own), false};
  }

  IoLoop loop_;
  const std::string directory_;
  fakes::Authority authority_;
  fakes::CertifiedKey server_;
  std::shared_ptr<const TlsContext> context_;
  asio::ip::tcp::acceptor acceptor_{loop_.io()};
  std::unique_ptr<ByteStream> stream_;
};

TEST_F(ByteStreamTest, LongWriteWaitsForItsReader) {
  const std::vector<uint8_t> sent = pattern(4u << 20);
  std::promise<void> reads;
  std::vector<uint8_t> received;
  std::thread peer([&] {
    TlsClient client_side(address(), client());
    EXPECT_EQ(client_side.fault(), "");
    reads.get_future().wait();
    received = client_side.receive_all();
    EXPECT_FALSE(client_side.may_resume()) << "each connection shows its certificate again";
  });
  EXPECT_EQ(serve(), "");
  EXPECT_TRUE(stream_->is_ready());
  EXPECT_FALSE(stream_->has_certificate());
  EXPECT_EQ(stream_->certificate_sha256(), "");
  bool is_written = false;
  stream_->async_write(asio::buffer(sent), [&](const std::error_code& error, size_t) {
    EXPECT_FALSE(error) << error.message();
    is_written = true;
  });
  loop_.run();
  EXPECT_FALSE(is_written) << "no one reads yet";
  reads.set_value();
  EXPECT_TRUE(loop_.run_until([&] { return is_written; }));
  stream_->end_sending();
  peer.join();
  EXPECT_TRUE(received == sent);
}

TEST_F(ByteStreamTest, EndOfSendingIsSaidWithinTlsToo) {
  const std::vector<uint8_t> sent = pattern(100);
  std::vector<uint8_t> received;
  bool ended_cleanly = false;
  std::thread peer([&] {
    TlsClient client_side(address(), client());
    received = client_side.receive_all();
    ended_cleanly = client_side.ended_cleanly();
  });
  EXPECT_EQ(serve(), "");
  bool is_written = false;
  stream_->async_write(asio::buffer(sent),
                       [&](const std::error_code&, size_t) { is_written = true; });
  EXPECT_TRUE(loop_.run_until([&] { return is_written; }));
  stream_->end_sending();
  peer.join();
  EXPECT_TRUE(received == sent);
  EXPECT_TRUE(ended_cleanly);
}

TEST_F(ByteStreamTest, ReadsTheStreamToItsEnd) {
  const std::vector<uint8_t> sent = pattern(300'000);
  std::promise<void> over;
  std::thread peer([&] {
    TlsClient client_side(address(), client());
    EXPECT_TRUE(client_side.send_bytes(sent));
    over.get_future().wait();
  });
  EXPECT_EQ(serve(), "");
  // What something else on this thread left behind is not about this stream.
  ERR_raise(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR);
  std::vector<uint8_t> begin(sent.size());
  size_t filled = 0;
  EXPECT_TRUE(loop_.run_until([&] {
    std::error_code error;
    filled += stream_->read_some(asio::buffer(begin) + filled, error);
    EXPECT_TRUE(!error || error == asio::error::would_block) << error.message();
    return filled == sent.size();
  }));
  EXPECT_TRUE(begin == sent);
  over.set_value();
  peer.join();  // closes without TLS's own end
  const auto [rest, error] = read_all();
  EXPECT_TRUE(rest.empty());
  EXPECT_STREQ(error.category().name(), "tls");
  EXPECT_EQ(error.message(), "TLS: unexpected eof while reading");
}

TEST_F(ByteStreamTest, CertificateIsKnownByItsSha256) {
  load(authority_.certificate());
  const fakes::CertifiedKey own = authority_.issue("agent");
  std::promise<void> over;
  std::thread peer([&] {
    const TlsClient client_side(address(), client(own));
    over.get_future().wait();
  });
  EXPECT_EQ(serve(), "");
  EXPECT_TRUE(stream_->has_certificate());
  std::FILE* const file = std::fopen(own.certificate.c_str(), "r");
  X509* const certificate = PEM_read_X509(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  unsigned char* der = nullptr;
  const int bytes = i2d_X509(certificate, &der);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(bytes), digest);
  OPENSSL_free(der);
  X509_free(certificate);
  std::string hex;
  for (const unsigned char byte : digest) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", byte);
    hex += text;
  }
  EXPECT_EQ(stream_->certificate_sha256(), hex);
  over.set_value();
  peer.join();
}

TEST_F(ByteStreamTest, FailedHandshakeSaysWhy) {
  const std::string plain = "GET / HTTP/1.1\r\n\r\n";
  FrameSocket other = FrameSocket::connect(address());
  ASSERT_TRUE(
      other.send_bytes(Bytes(reinterpret_cast<const uint8_t*>(plain.data()), plain.size())));
  EXPECT_EQ(serve(), "TLS handshake: TLS: http request");
  EXPECT_FALSE(stream_->is_ready());
  EXPECT_FALSE(stream_->has_certificate());

  FrameSocket gone = FrameSocket::connect(address());
  gone.reset();
  EXPECT_EQ(serve(), "TLS handshake: Connection reset by peer");

  load(authority_.certificate());
  const fakes::Authority foreign(directory_, "foreign");
  std::thread unknown([&] { const TlsClient client_side(address(), client(foreign.issue("x"))); });
  EXPECT_EQ(
      serve(),
      "TLS handshake: TLS: certificate verify failed: unable to get local issuer certificate");
  unknown.join();
}

TEST_F(ByteStreamTest, ClosedItEndsWhatWaits) {
  std::promise<void> over;
  bool ended_cleanly = false;
  std::thread peer([&] {
    TlsClient client_side(address(), client());
    (void)client_side.receive_all();
    ended_cleanly = client_side.ended_cleanly();
    over.get_future().wait();
  });
  EXPECT_EQ(serve(), "");
  std::error_code read_error, write_error;
  char byte = 0;
  stream_->async_read_some(asio::buffer(&byte, 1),
                           [&](const std::error_code& error, size_t) { read_error = error; });
  loop_.run();
  stream_->close();
  loop_.run();
  EXPECT_EQ(read_error, asio::error::operation_aborted);
  stream_->async_read_some(asio::buffer(&byte, 1),
                           [&](const std::error_code& error, size_t) { read_error = error; });
  stream_->async_write(asio::buffer(&byte, 1),
                       [&](const std::error_code& error, size_t) { write_error = error; });
  read_error = {};
  loop_.run();
  EXPECT_EQ(read_error, asio::error::operation_aborted);
  EXPECT_EQ(write_error, asio::error::operation_aborted);
  over.set_value();
  peer.join();
  EXPECT_TRUE(ended_cleanly) << "TLS has an end of its own";
}

}  // namespace
}  // namespace collect::ingest
