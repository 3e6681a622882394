#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/control/service/download_call.h"
#include "formats/core/crc32.h"
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using ::testing::HasSubstr;
using Stub = api::Collector::Stub;

uint32_t checksum(const std::string& data) {
  return crc32c({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
}

class FileServiceTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    collector_.add_session("one", api::SESSION_STATE_COMPLETE);
    for (size_t i = 0; i < 3 * kDownloadChunkBytes + 17; ++i) {
      content_ += static_cast<char>(i * 31 + i / 251);
    }
    collector_.add_file("thread_0/index.atf", content_);
    collector_.add_file("manifest.json", "{}");
  }

  struct Download {
    std::string data;
    std::optional<api::DownloadEnd> end;
    size_t chunks = 0;
    grpc::Status status;
  };
  Download download(const std::string& path, uint64_t offset = 0, uint64_t bytes = 0) {
    api::DownloadFileRequest request;
    request.set_name("one");
    request.set_path(path);
    request.set_offset(offset);
    request.set_size_bytes(bytes);
    const auto made = context();
    const auto reader = stub_->DownloadFile(made.get(), request);
    Download result;
    api::FileChunk chunk;
    while (reader->Read(&chunk)) {
      if (chunk.has_end()) {
        EXPECT_FALSE(result.end.has_value());
        EXPECT_TRUE(chunk.data().empty());
        result.end = chunk.end();
        continue;
      }
      ++result.chunks;
      EXPECT_EQ(chunk.offset(), offset + result.data.size());
      EXPECT_EQ(chunk.crc32c(), checksum(chunk.data()));
      EXPECT_LE(chunk.data().size(), kDownloadChunkBytes);
      result.data += chunk.data();
    }
    result.status = reader->Finish();
    return result;
  }

  std::string content_;
};

TEST_F(FileServiceTest, FileComesWholeInChunksWithItsChecksum) {
  const Download whole = download("thread_0/index.atf");
  ASSERT_TRUE(whole.status.ok()) << whole.status.error_message();
  EXPECT_EQ(whole.data, content_);
  EXPECT_EQ(whole.chunks, 4u);
  ASSERT_TRUE(whole.end.has_value());
  EXPECT_EQ(whole.end->file_size_bytes(), content_.size());
  EXPECT_EQ(whole.end->size_bytes(), content_.size());
  EXPECT_EQ(whole.end->crc32c(), checksum(content_));
}

TEST_F(FileServiceTest, RangesBeginAndEndWhereTheyAreWanted) {
  const struct {
    uint64_t offset, bytes;
  } ranges[] = {{1, 1},
                {0, kDownloadChunkBytes},
                {kDownloadChunkBytes - 1, kDownloadChunkBytes + 2},
                {content_.size() - 5, 5},
                {content_.size() - 5, 500},
                {7, UINT64_MAX},
                {content_.size(), 0}};
  for (const auto& range : ranges) {
    const Download part = download("thread_0/index.atf", range.offset, range.bytes);
    ASSERT_TRUE(part.status.ok()) << part.status.error_message();
    const std::string expected =
        content_.substr(range.offset, range.bytes == 0 ? std::string::npos : range.bytes);
    EXPECT_EQ(part.data, expected) << range.offset;
    ASSERT_TRUE(part.end.has_value());
    EXPECT_EQ(part.end->size_bytes(), expected.size());
    EXPECT_EQ(part.end->crc32c(), checksum(expected));
  }
  const Download beyond = download("thread_0/index.atf", content_.size() + 1);
  EXPECT_EQ(beyond.status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(FileServiceTest, ReportsDownloadsItCannotComplete) {
  EXPECT_EQ(download("").status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(download("x\n").status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(download("thread_9/index.atf").status.error_code(), grpc::StatusCode::NOT_FOUND);
  collector_.cut_files_at(kDownloadChunkBytes + 3);
  const Download cut = download("thread_0/index.atf");
  EXPECT_EQ(cut.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(cut.status.error_message(), HasSubstr("shorter"));
  EXPECT_FALSE(cut.end.has_value());
  EXPECT_EQ(cut.data, content_.substr(0, kDownloadChunkBytes));
}

TEST_F(FileServiceTest, ClientsThatGoAwayFreeTheirPlace) {
  api::DownloadFileRequest request;
  request.set_name("one");
  request.set_path("thread_0/index.atf");
  for (uint32_t i = 0; i < 2 * kMaxDownloads; ++i) {
    const auto made = context();
    const auto reader = stub_->DownloadFile(made.get(), request);
    api::FileChunk chunk;
    ASSERT_TRUE(reader->Read(&chunk)) << i;
    made->TryCancel();
    (void)reader->Finish();
  }
  EXPECT_TRUE(download("manifest.json").status.ok());
}

TEST_F(FileServiceTest, DownloadsBeyondTheLimitAreRefused) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<api::FileChunk>>> readers;
  api::DownloadFileRequest request;
  request.set_name("one");
  request.set_path("thread_0/index.atf");
  collector_.hold_answers();
  for (uint32_t i = 0; i < kMaxDownloads; ++i) {
    contexts.push_back(context());
    readers.push_back(stub_->DownloadFile(contexts.back().get(), request));
  }
  collector_.wait_for_held(kMaxDownloads);
  EXPECT_EQ(download("manifest.json").status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  collector_.release_all();
  for (const auto& reader : readers) {
    api::FileChunk chunk;
    while (reader->Read(&chunk)) {
    }
    EXPECT_TRUE(reader->Finish().ok());
  }
}

TEST_F(FileServiceTest, EndOfTheServerEndsDownloads) {
  api::DownloadFileRequest request;
  request.set_name("one");
  request.set_path("thread_0/index.atf");
  collector_.hold_answers();
  const auto made = context();
  const auto reader = stub_->DownloadFile(made.get(), request);
  collector_.wait_for_held(1);
  server_->shutdown(ControlServer::kShutdownDeadline);
  api::FileChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  collector_.release_all();  // the answer goes nowhere
}

TEST_F(FileServiceTest, ListsByPage) {
  for (int i = 1; i <= 4; ++i) {
    collector_.add_file("thread_" + std::to_string(i) + "/index.atf", "x");
  }
  api::ListFilesRequest request;
  request.set_page_size(4);
  api::ListFilesResponse first;
  ASSERT_TRUE(call(&Stub::ListFiles, request, &first).ok());
  EXPECT_EQ(first.session(), "sessions/one");
  EXPECT_EQ(first.state(), api::SESSION_STATE_COMPLETE);
  ASSERT_EQ(first.files_size(), 4);
  EXPECT_EQ(first.files(0).path(), "manifest.json");
  EXPECT_EQ(first.files(0).size_bytes(), 2u);
  request.set_page_token(first.next_page_token());
  api::ListFilesResponse second;
  ASSERT_TRUE(call(&Stub::ListFiles, request, &second).ok());
  EXPECT_EQ(second.files_size(), 2);
  EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(FileServiceTest, DeletesOnlyByName) {
  api::DeleteSessionRequest request;
  api::DeleteSessionResponse response;
  EXPECT_EQ(call(&Stub::DeleteSession, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_name("sessions/one");
  ASSERT_TRUE(call(&Stub::DeleteSession, request, &response).ok());
  EXPECT_EQ(collector_.last_argument(), "sessions/one");
  EXPECT_EQ(response.removed_files(), 3u);
}

TEST_F(FileServiceTest, SnapshotIsAnsweredWithTheCopy) {
  api::SnapshotSessionRequest request;
  api::Session snapshot;
  ASSERT_TRUE(call(&Stub::SnapshotSession, request, &snapshot).ok());
  EXPECT_EQ(snapshot.name(), "sessions/session_20260131_235959_snap1/pid_7");
  EXPECT_EQ(collector_.last_argument(), "");
  request.set_name("one");
  ASSERT_TRUE(call(&Stub::SnapshotSession, request, &snapshot).ok());
  EXPECT_EQ(collector_.last_argument(), "one");
  request.set_name(std::string(5000, 'x'));
  EXPECT_EQ(call(&Stub::SnapshotSession, request, &snapshot).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

class ConversionServiceTest : public FileServiceTest {
 protected:
  struct Conversion {
    std::vector<api::ConvertSessionProgress> messages;
    grpc::Status status;
  };
  static api::ConvertSessionRequest request(uint32_t version) {
    api::ConvertSessionRequest request;
    request.set_name("one");
    request.set_atf_version(version);
    return request;
  }
  Conversion convert(const api::ConvertSessionRequest& request) {
    const auto made = context();
    const auto reader = stub_->ConvertSession(made.get(), request);
    Conversion conversion;
    api::ConvertSessionProgress progress;
    while (reader->Read(&progress)) conversion.messages.push_back(progress);
    conversion.status = reader->Finish();
    return conversion;
  }
};

TEST_F(ConversionServiceTest, LastMessageHasTheNewSession) {
  const Conversion done = convert(request(1));
  ASSERT_TRUE(done.status.ok()) << done.status.error_message();
  EXPECT_EQ(collector_.last_argument(), "one");
  EXPECT_EQ(collector_.last_atf_version(), 1u);
  ASSERT_EQ(done.messages.size(), 1u);
  const api::ConvertSessionProgress& last = done.messages.back();
  EXPECT_EQ(last.done_bytes(), 4096u);
  EXPECT_EQ(last.total_bytes(), 4096u);
  EXPECT_EQ(last.end().session().name(), "sessions/one_atf1");
  ASSERT_EQ(last.end().missing_size(), 1);
  EXPECT_EQ(last.end().missing(0).what(), "thread_1/index.atf: gone");
  EXPECT_EQ(last.end().missing(0).count(), 7u);
  EXPECT_EQ(last.end().left_out(0).what(), "call depths");
  EXPECT_EQ(last.end().missing_left_out(), 2u);
}

TEST_F(ConversionServiceTest, VersionIsNeverADefault) {
  for (const uint32_t version : {0u, 3u, 0xFFFFFFFFu}) {
    const Conversion refused = convert(request(version));
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << version;
    EXPECT_THAT(refused.status.error_message(), HasSubstr("write 1 or 2"));
  }
  api::ConvertSessionRequest odd = request(1);
  odd.set_name("one\n");
  EXPECT_EQ(convert(odd).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(collector_.last_atf_version(), 0u);
}

TEST_F(ConversionServiceTest, MapsCollectorErrorsToStatusCodes) {
  const std::pair<Code, grpc::StatusCode> cases[] = {
      {Code::kNotFound, grpc::StatusCode::NOT_FOUND},
      {Code::kUnsupported, grpc::StatusCode::FAILED_PRECONDITION},
      {Code::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
      {Code::kNoSpace, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {Code::kLimit, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {Code::kUnavailable, grpc::StatusCode::UNAVAILABLE},
  };
  for (const auto& [code, status] : cases) {
    collector_.fail_with({code, "why"});
    const Conversion refused = convert(request(2));
    EXPECT_EQ(refused.status.error_code(), status);
    EXPECT_EQ(refused.status.error_message(), "why");
    EXPECT_TRUE(refused.messages.empty());
  }
}

TEST_F(ConversionServiceTest, ReportsProgressAndEndsWithTheCall) {
  collector_.hold_answers();
  const auto made = context();
  const auto reader = stub_->ConvertSession(made.get(), request(1));
  collector_.wait_for_held(1);
  EXPECT_TRUE(collector_.convert_to(10, 100));
  api::ConvertSessionProgress progress;
  ASSERT_TRUE(reader->Read(&progress));
  EXPECT_EQ(progress.done_bytes(), 10u);
  EXPECT_EQ(progress.total_bytes(), 100u);
  EXPECT_FALSE(progress.has_end());
  made->TryCancel();
  const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
  while (collector_.convert_to(20, 100)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it is still wanted";
    std::this_thread::yield();
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  collector_.release_all();  // the answer goes nowhere
}

TEST_F(ConversionServiceTest, EndOfTheServerEndsConversions) {
  collector_.hold_answers();
  const auto made = context();
  const auto reader = stub_->ConvertSession(made.get(), request(1));
  collector_.wait_for_held(1);
  server_->shutdown(ControlServer::kShutdownDeadline);
  EXPECT_FALSE(collector_.convert_to(20, 100));
  const grpc::Status ended = reader->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(ended.error_message(), HasSubstr("ask again"));
  collector_.release_all();
}

}  // namespace
}  // namespace collect::control
