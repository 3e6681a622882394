// What the client makes of a download whose bytes are not those that were sent: a server that says
// what the real one never would.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/ctl/control/connection/client.h"
#include "formats/core/crc32.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

constexpr char kFirstPart[] = "the first chunk, ";
constexpr char kSecondPart[] = "the second";

uint32_t crc_of(const std::string& text) {
  return crc32c(Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

class ScriptedService final : public api::Collector::Service {
 public:
  std::vector<api::FileChunk> chunks;

  grpc::Status DownloadFile(grpc::ServerContext*, const api::DownloadFileRequest*,
                            grpc::ServerWriter<api::FileChunk>* writer) override {
    for (const api::FileChunk& chunk : chunks) writer->Write(chunk);
    return grpc::Status::OK;
  }
};

class ClientDownloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
    add_chunk(0, kFirstPart);
    add_chunk(sizeof(kFirstPart) - 1, kSecondPart);
    api::DownloadEnd& end = *service_.chunks.emplace_back().mutable_end();
    end.set_size_bytes(sizeof(kFirstPart) + sizeof(kSecondPart) - 2);
    end.set_crc32c(crc_of(std::string(kFirstPart) + kSecondPart));
  }

  void add_chunk(uint64_t offset, const std::string& data) {
    api::FileChunk& chunk = service_.chunks.emplace_back();
    chunk.set_offset(offset);
    chunk.set_data(data);
    chunk.set_crc32c(crc_of(data));
  }

  Result<api::DownloadEnd> download() {
    taken_.clear();
    Client client{ControlTarget{address_}};
    return client.download("sessions/one", "thread_0/index.atf", 0,
                           [this](const std::string& data) {
                             taken_ += data;
                             return Status();
                           });
  }

  void expect_damaged(const char* said) {
    const auto end = download();
    ASSERT_FALSE(end.ok());
    EXPECT_EQ(end.code(), Code::kDamaged);
    EXPECT_THAT(end.error().message, HasSubstr("thread_0/index.atf"));
    EXPECT_THAT(end.error().message, HasSubstr(said));
    EXPECT_THAT(end.error().message, HasSubstr("download it again"));
  }

  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::string taken_;
};

TEST_F(ClientDownloadTest, WholeFileIsTaken) {
  const auto end = download();
  ASSERT_TRUE(end.ok()) << to_string(end.error());
  EXPECT_EQ(taken_, std::string(kFirstPart) + kSecondPart);
}

TEST_F(ClientDownloadTest, ChunkWithAnotherChecksumIsNotTaken) {
  service_.chunks[1].set_crc32c(service_.chunks[1].crc32c() + 1);
  expect_damaged("at byte 17 is not what was sent");
  EXPECT_EQ(taken_, kFirstPart);
}

TEST_F(ClientDownloadTest, ChunkOfAnotherPlaceIsNotTaken) {
  service_.chunks[1].set_offset(3);
  expect_damaged("at byte 17 is not what was sent");
  EXPECT_EQ(taken_, kFirstPart);
}

TEST_F(ClientDownloadTest, StreamWithoutItsEndIsNoFile) {
  service_.chunks.pop_back();
  expect_damaged("ended at byte 27 without being whole");
}

TEST_F(ClientDownloadTest, EndOfAnotherSizeIsNoFile) {
  service_.chunks[2].mutable_end()->set_size_bytes(28);
  expect_damaged("without being whole");
}

TEST_F(ClientDownloadTest, EndWithAnotherChecksumIsNoFile) {
  service_.chunks[2].mutable_end()->set_crc32c(7);
  expect_damaged("without being whole");
}

}  // namespace
}  // namespace collect::ctl
