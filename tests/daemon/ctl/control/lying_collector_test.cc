// Commands against a collector that answers what the real one never would: lists without an end,
// files of other sizes than announced, names and paths that lead elsewhere.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/download.h"
#include "formats/core/crc32.h"
#include "formats/core/untrusted_pages.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kNamedSession[] = "sessions/session_20260131_235959/pid_7";
constexpr char kIndex[] = "thread_0/index.atf";
constexpr uint64_t kChunkBytes = 1 << 16;

class LyingCollector final : public api::Collector::Service {
 public:
  // Of the page with this token: the token behind it.
  std::function<std::string(const std::string& token)> next = [](const auto&) { return ""; };
  int entries = 1;  // of each page
  std::string path = "/data/session_20260131_235959/pid_7";
  api::SessionState state = api::SESSION_STATE_COMPLETE;
  std::vector<std::pair<std::string, uint64_t>> files{};  // as ListFiles has them
  uint64_t sent_bytes = 0;                                // of any file but the manifest
  uint64_t pages = 0;

  grpc::Status ListAgents(grpc::ServerContext*, const api::ListAgentsRequest* request,
                          api::ListAgentsResponse* answer) override {
    return list(*request, *answer, [&] { answer->add_agents()->set_name("agents/1"); });
  }
  grpc::Status ListSessions(grpc::ServerContext*, const api::ListSessionsRequest* request,
                            api::ListSessionsResponse* answer) override {
    return list(*request, *answer, [&] { *answer->add_sessions() = session(); });
  }
  grpc::Status ListThreads(grpc::ServerContext*, const api::ListThreadsRequest* request,
                           api::ListThreadsResponse* answer) override {
    return list(*request, *answer, [&] { answer->add_threads()->set_thread_id(1); });
  }
  grpc::Status GetSession(grpc::ServerContext*, const api::GetSessionRequest*,
                          api::Session* answer) override {
    *answer = session();
    return grpc::Status::OK;
  }
  grpc::Status ListFiles(grpc::ServerContext*, const api::ListFilesRequest* request,
                         api::ListFilesResponse* answer) override {
    answer->set_session(kNamedSession);
    answer->set_state(state);
    if (files.empty()) return list(*request, *answer, [&] { answer->add_files()->set_path("x"); });
    for (const auto& [name, bytes] : files) {
      api::SessionFile& file = *answer->add_files();
      file.set_path(name);
      file.set_size_bytes(bytes);
    }
    return grpc::Status::OK;
  }
  // Each chunk, and the end, are right in themselves.
  grpc::Status DownloadFile(grpc::ServerContext*, const api::DownloadFileRequest* request,
                            grpc::ServerWriter<api::FileChunk>* writer) override {
    storage::Manifest manifest;
    manifest.state = storage::SessionState::kComplete;
    const std::string text = storage::manifest_to_json(manifest);
    const bool is_manifest = request->path() == "manifest.json";
    const uint64_t end = is_manifest ? text.size() : sent_bytes;
    uint32_t crc = 0;
    uint64_t at = request->offset();
    while (at < end) {
      api::FileChunk chunk;
      chunk.set_offset(at);
      chunk.set_data(is_manifest ? text : std::string(std::min(kChunkBytes, end - at), 'x'));
      const Bytes bytes(reinterpret_cast<const uint8_t*>(chunk.data().data()), chunk.data().size());
      chunk.set_crc32c(crc32c(bytes));
      crc = crc32c(bytes, crc);
      at += bytes.size();
      if (!writer->Write(chunk)) return grpc::Status::CANCELLED;
    }
    api::FileChunk last;
    last.mutable_end()->set_size_bytes(at - request->offset());
    last.mutable_end()->set_crc32c(crc);
    writer->Write(last);
    return grpc::Status::OK;
  }

 private:
  api::Session session() const {
    api::Session session;
    session.set_name(kNamedSession);
    session.set_path(path);
    return session;
  }
  template <class Request, class Response, class Add>
  grpc::Status list(const Request& request, Response& answer, Add add) {
    ++pages;
    for (int i = 0; i < entries; ++i) add();
    answer.set_next_page_token(next(request.page_token()));
    return grpc::Status::OK;
  }
};

class LyingCollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "lying_collector_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&collector_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    online_.control = ControlTarget{"127.0.0.1:" + std::to_string(port)};
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Every list that collectctl reads.
  std::vector<std::pair<const char*, std::function<Status(Client&)>>> lists() const {
    const auto status = [](const auto& result) {
      return result.ok() ? Status() : Status(result.error());
    };
    return {{"agents", [=](Client& client) { return status(client.agents("")); }},
            {"sessions", [=](Client& client) { return status(client.sessions("")); }},
            {"threads", [=](Client& client) { return status(client.threads("1")); }},
            {"files", [=](Client& client) { return status(client.files("")); }}};
  }
  void expect_every_list(Code code, const char* said, uint64_t most_pages) {
    Client client(online_.control);
    for (const auto& [what, ask] : lists()) {
      collector_.pages = 0;
      const Status status = ask(client);
      EXPECT_EQ(status.code(), code) << what;
      EXPECT_THAT(status.ok() ? "" : status.error().message,
                  HasSubstr(std::string("the collector's list of ") + what + " " + said));
      EXPECT_LE(collector_.pages, most_pages) << what;
    }
  }
  int download_index(uint64_t announced, uint64_t sent) {
    collector_.files = {{"manifest.json", 100}, {kIndex, announced}};
    collector_.sent_bytes = sent;
    err_.str("");
    return download(online_, {"", {}, (directory_ / "copy").string()});
  }
  fs::path index() const { return directory_ / "copy" / kIndex; }

  fs::path directory_;
  LyingCollector collector_;
  std::unique_ptr<grpc::Server> server_;
  std::ostringstream out_;
  std::ostringstream err_;
  Online online_{"", false, false, out_, err_};
};

TEST_F(LyingCollectorTest, ListsComeToAnEnd) {
  collector_.next = [](const std::string&) { return "again"; };
  expect_every_list(Code::kDamaged, "comes back to an earlier page", 3);
  collector_.next = [](const std::string& token) {
    return token.empty() ? "a" : token == "a" ? "b" : "a";
  };
  expect_every_list(Code::kDamaged, "comes back to an earlier page", 10);
  collector_.next = [](const std::string&) { return std::string(kMaxPageTokenBytes + 1, 'x'); };
  expect_every_list(Code::kDamaged, "names its next page", 1);
  collector_.entries = 0;
  collector_.next = [](const std::string& token) { return token + "x"; };
  expect_every_list(Code::kDamaged, "has more than 1000 empty pages", kMaxEmptyPages + 1);
}

TEST_F(LyingCollectorTest, ListsHaveALargestLength) {
  // Pages larger than those that were asked for: a million entries are the bound.
  collector_.entries = 250'000;
  uint64_t page = 0;
  collector_.next = [&](const std::string&) { return std::to_string(++page); };
  Client client(online_.control);
  const auto threads = client.threads("1");
  EXPECT_EQ(threads.code(), Code::kLimit);
  EXPECT_EQ(collector_.pages, 5u);
}

TEST_F(LyingCollectorTest, FileHasTheSizeThatWasAnnounced) {
  EXPECT_EQ(download_index(200'000, 200'001), 1);
  EXPECT_THAT(err_.str(), HasSubstr("more came than the 200000 bytes that were announced"));
  EXPECT_FALSE(fs::exists(index()));
  EXPECT_LE(fs::file_size(index().string() + ".part"), 200'000u);
  // Without an end: it is cut off, not waited for.
  EXPECT_EQ(download_index(200'000, UINT64_MAX), 1);
  EXPECT_THAT(err_.str(), HasSubstr("more came than"));
  EXPECT_EQ(download_index(200'000, 199'999), 1);
  EXPECT_THAT(err_.str(), HasSubstr("bytes came that were announced"));
  EXPECT_FALSE(fs::exists(index()));
  fs::remove_all(directory_ / "copy");
  EXPECT_EQ(download_index(200'000, 200'000), 0) << err_.str();
  EXPECT_EQ(fs::file_size(index()), 200'000u);
}

TEST_F(LyingCollectorTest, SizesThatNoDiskHasAreRefused) {
  for (const uint64_t announced : {uint64_t{1} << 60, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_EQ(download_index(announced, UINT64_MAX), 1);
    EXPECT_THAT(err_.str(), HasSubstr("the disk has room for"));
    EXPECT_FALSE(fs::exists(index().string() + ".part"));
  }
}

TEST_F(LyingCollectorTest, PathsLeadNowhereElse) {
  for (const char* name : {"../../x", "/etc/cron.d/x", "thread_0/../../x", "thread_0//index.atf",
                           "thread_0", "", "resume.key", "thread_0/index.atf.part"}) {
    collector_.files = {{"manifest.json", 100}, {name, 1}};
    EXPECT_EQ(download(online_, {"", {}, (directory_ / "a/b/copy").string()}), 1) << name;
    EXPECT_FALSE(fs::exists(directory_ / "a")) << name;
  }
  collector_.files = {{std::string("thread_0/index.atf\0x", 20), 1}};
  EXPECT_EQ(download(online_, {"", {}, (directory_ / "a/b/copy").string()}), 1);
  EXPECT_FALSE(fs::exists(directory_ / "a"));
}

// `run` and `attach` read and name sessions by the path that the collector gives them.
TEST_F(LyingCollectorTest, AcceptsOnlyADirectoryOfTheSessionsName) {
  Client client(online_.control);
  EXPECT_TRUE(client.sessions("").ok());
  collector_.path.clear();
  EXPECT_TRUE(client.session(kNamedSession).ok());
  for (const char* path :
       {"/home/ada/.ssh", "session_20260131_235959/pid_7", "/data/session_20260131_235959/pid_8",
        "/data/../etc/session_20260131_235959/pid_7", "/data/xsession_20260131_235959/pid_7"}) {
    collector_.path = path;
    for (const Code code : {client.session(kNamedSession).code(), client.sessions("").code()}) {
      EXPECT_EQ(code, Code::kDamaged) << path;
    }
  }
  EXPECT_EQ(list_sessions(online_, ""), 1);
  EXPECT_THAT(err_.str(), HasSubstr("which is no directory of it"));
}

}  // namespace
}  // namespace collect::ctl
