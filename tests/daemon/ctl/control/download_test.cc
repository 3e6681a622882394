// files, download and delete against a real server with a scripted collector.
#include "daemon/ctl/control/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "daemon/control/control_server.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
namespace api = control::v1;
using ::testing::HasSubstr;

constexpr char kSession[] = "session_20260131_235959/pid_7";

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class DownloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "download_test_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    online_.control = server_->address();
    json_.control = server_->address();
    collector_.add_session(kSession, api::SESSION_STATE_COMPLETE);
    for (int i = 0; i < 700'000; ++i) index_ += static_cast<char>(i * 7 + i / 255);
    collector_.add_file("manifest.json", manifest(1, "complete"));
    collector_.add_file("thread_0/index.atf", index_);
  }
  ~DownloadTest() override { fs::remove_all(directory_); }

  // Of the process that this number represents.
  static std::string manifest(int process, const std::string& state) {
    storage::Manifest made;
    made.identity.process_id[0] = static_cast<uint8_t>(process);
    made.identity.recording = 1;
    made.identity.start_unix_ns = 1'700'000'000'000'000'000;
    made.identity.tag = state;
    made.state = storage::SessionState::kComplete;
    return storage::manifest_to_json(made);
  }

  int download_to(const std::string& name, std::vector<std::string> files = {}) {
    return download(online_, {"", std::move(files), (directory_ / name).string()});
  }

  fs::path directory_;
  std::string index_;
  control::FakeCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
  std::ostringstream out_;
  std::ostringstream err_;
  Online online_{"", false, false, out_, err_};
  Online json_{"", true, false, out_, err_};
};

TEST_F(DownloadTest, FetchesEveryFileAndKeepsWhatIsThere) {
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  EXPECT_EQ(content_of(directory_ / "copy/manifest.json"), manifest(1, "complete"));
  EXPECT_FALSE(fs::exists(directory_ / "copy/manifest.json.part"));
  EXPECT_THAT(out_.str(), HasSubstr("copy: 2 files"));
  out_.str("");
  ASSERT_EQ(download_to("copy"), 0);
  EXPECT_THAT(out_.str(), HasSubstr("0 files, 0 B; 2 were there already"));
}

TEST_F(DownloadTest, ContinuesWhereAnInterruptedOneEnded) {
  collector_.cut_files_at(600'000);
  EXPECT_EQ(download_to("copy"), 1);
  EXPECT_THAT(err_.str(), HasSubstr("continues where this ended"));
  EXPECT_FALSE(fs::exists(directory_ / "copy/thread_0/index.atf"));
  const auto part = fs::file_size(directory_ / "copy/thread_0/index.atf.part");
  EXPECT_GT(part, 0u);
  collector_.cut_files_at(UINT64_MAX);
  ASSERT_EQ(download(json_, {"", {}, (directory_ / "copy").string()}), 0);
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  EXPECT_THAT(out_.str(), HasSubstr("\"bytes\":" + std::to_string(index_.size() - part)));
}

TEST_F(DownloadTest, OnlyTheFilesThatAreNamed) {
  ASSERT_EQ(download_to("copy", {"manifest.json"}), 0);
  EXPECT_FALSE(fs::exists(directory_ / "copy/thread_0"));
  EXPECT_EQ(download_to("copy", {"thread_1/index.atf"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("has no file thread_1/index.atf"));
}

TEST_F(DownloadTest, CollectorsWordsLeadNowhereElse) {
  collector_.add_file("../../outside", "x");
  EXPECT_EQ(download_to("a/b/copy"), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no file of a session"));
  EXPECT_FALSE(fs::exists(directory_ / "a/outside"));
  collector_.add_session("../../elsewhere", api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(download(online_, {}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("which is no name"));
}

TEST_F(DownloadTest, CopiesASessionThatRecordsAgain) {
  collector_.add_session("session_20260131_235959_2/pid_7", api::SESSION_STATE_ACTIVE);
  ASSERT_EQ(download_to("copy"), 0);
  EXPECT_THAT(err_.str(), HasSubstr("still records"));
  collector_.add_file("manifest.json", manifest(1, "later"));
  // What was overwritten in place has the same size.
  index_[5] = static_cast<char>(~index_[5]);
  collector_.add_file("thread_0/index.atf", index_);
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/manifest.json"), manifest(1, "later"));
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
}

// Seen: `download -o DIR` replaced a manifest.json that had nothing to do with it, without a word.
// Of a file that is copied while it grows, the beginning is that of an unfinished one.
TEST_F(DownloadTest, ReplacesCopiesMadeWhileRecording) {
  const std::string sealed = index_;
  const auto state_is = [&](api::SessionState state, storage::SessionState written) {
    collector_.add_session(kSession, state);
    storage::Manifest made;
    made.identity.process_id[0] = 1;
    made.state = written;
    collector_.add_file("manifest.json", storage::manifest_to_json(made));
  };
  state_is(api::SESSION_STATE_ACTIVE, storage::SessionState::kRecording);
  index_[0] = 'u';
  collector_.add_file("thread_0/index.atf", index_);
  collector_.add_file("thread_1/index.atf", index_);
  ASSERT_EQ(download_to("copy", {"thread_1/index.atf"}), 0) << err_.str();
  collector_.cut_files_at(600'000);
  ASSERT_EQ(download_to("copy", {"thread_0/index.atf"}), 1);
  ASSERT_TRUE(fs::exists(directory_ / "copy/thread_0/index.atf.part"));
  collector_.cut_files_at(UINT64_MAX);

  state_is(api::SESSION_STATE_COMPLETE, storage::SessionState::kComplete);
  collector_.add_file("thread_0/index.atf", sealed);
  collector_.add_file("thread_1/index.atf", sealed);
  ASSERT_EQ(download_to("copy", {"manifest.json"}), 0) << err_.str();
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), sealed);
  EXPECT_EQ(content_of(directory_ / "copy/thread_1/index.atf"), sealed);
}

TEST_F(DownloadTest, KeepsFilesOfOtherSessions) {
  const fs::path copy = directory_ / "copy";
  fs::create_directories(copy / "thread_0");
  for (const char* name :
       {"manifest.json", "manifest.json.part", "thread_0/index.atf", "thread_0/index.atf.part"}) {
    std::ofstream(copy / name) << "mine";
    EXPECT_EQ(download_to("copy"), 1) << name;
    EXPECT_THAT(err_.str(), HasSubstr(std::string(name) + ": is there already, and not of"));
    EXPECT_THAT(err_.str(), HasSubstr("--force"));
    EXPECT_EQ(content_of(copy / name), "mine");
    fs::remove(copy / name);
    EXPECT_TRUE(fs::is_empty(copy / "thread_0")) << name;
  }
  // Another session's copy, whose files may even have the same sizes.
  std::ofstream(copy / "manifest.json") << manifest(2, "complete");
  std::ofstream(copy / "thread_0/index.atf") << std::string(index_.size(), 'x');
  EXPECT_EQ(download_to("copy"), 1);
  EXPECT_EQ(content_of(copy / "manifest.json"), manifest(2, "complete"));
  DownloadOptions options{"", {}, copy.string()};
  options.force = true;
  EXPECT_EQ(download(online_, options), 0) << err_.str();
  EXPECT_EQ(content_of(copy / "manifest.json"), manifest(1, "complete"));
  EXPECT_EQ(content_of(copy / "thread_0/index.atf"), index_);
}

// Names that were looked up later change the manifest; the copy is this session's all the same.
TEST_F(DownloadTest, ManifestThatChangedMeanwhileIsFetchedAgain) {
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  collector_.add_file("manifest.json", manifest(1, "with names"));
  out_.str("");
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/manifest.json"), manifest(1, "with names"));
  EXPECT_THAT(out_.str(), HasSubstr("1 files"));
}

// Packs its session when the first container is asked for.
class PackingCollector final : public control::FakeCollector {
 public:
  void open_file(const std::string& name, const std::string& path,
                 control::Callback<std::shared_ptr<control::FileReader>> done) override {
    if (path == "thread_0/index.atf") {
      remove_file("capture-000001.rtc");
      remove_file("thread_1/index.atf");
      add_file("capture-000002.rtc", "dense");
      add_file("lanes.packed", "table");
      add_file("manifest.json", packed_manifest);
    }
    if (path == "capture-000002.rtc") cut_files_at(container_bytes);
    FakeCollector::open_file(name, path, std::move(done));
  }
  std::string packed_manifest;
  uint64_t container_bytes = UINT64_MAX;  // that are sent
};

TEST_F(DownloadTest, SessionPackedMeanwhileIsFetchedPacked) {
  PackingCollector packing;
  packing.packed_manifest = manifest(1, "packed");
  packing.add_session(kSession, api::SESSION_STATE_COMPLETE);
  packing.add_file("manifest.json", manifest(1, "complete"));
  packing.add_file("capture-000001.rtc", "as recorded");
  packing.add_file("thread_0/index.atf", index_);
  packing.add_file("thread_1/index.atf", index_);
  auto server = control::ControlServer::start("127.0.0.1:0", packing);
  ASSERT_TRUE(server.ok());
  online_.control = (*server)->address();
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  const fs::path copy = directory_ / "copy";
  EXPECT_EQ(content_of(copy / "manifest.json"), packing.packed_manifest);
  EXPECT_EQ(content_of(copy / "capture-000002.rtc"), "dense");
  EXPECT_EQ(content_of(copy / "lanes.packed"), "table");
  EXPECT_FALSE(fs::exists(copy / "capture-000001.rtc")) << "the session has it no more";
  EXPECT_FALSE(fs::exists(copy / "thread_1"));
  // What came before goes only when the rest is there.
  packing.container_bytes = 1;
  packing.remove_file("lanes.packed");
  packing.remove_file("capture-000002.rtc");
  packing.add_file("capture-000001.rtc", "as recorded");
  packing.add_file("thread_1/index.atf", index_);
  EXPECT_EQ(download_to("other"), 1);
  EXPECT_EQ(content_of(directory_ / "other/capture-000001.rtc"), "as recorded") << err_.str();
}

// Makes thread files of its containers, which no list has.
class PackedCollector final : public control::FakeCollector {
 public:
  void list_files(const std::string& name,
                  control::Callback<api::ListFilesResponse> done) override {
    FakeCollector::list_files(name, [done](Result<api::ListFilesResponse> listed) {
      api::ListFilesResponse without = *listed;
      without.clear_files();
      for (const api::SessionFile& file : listed->files()) {
        if (!file.path().ends_with(".atf")) *without.add_files() = file;
      }
      done(std::move(without));
    });
  }
};

TEST_F(DownloadTest, ThreadFilesOfPackedSessionsByName) {
  PackedCollector packed;
  packed.add_session(kSession, api::SESSION_STATE_COMPLETE);
  packed.add_file("manifest.json", manifest(1, "complete"));
  packed.add_file("thread_0/index.atf", index_);
  auto server = control::ControlServer::start("127.0.0.1:0", packed);
  ASSERT_TRUE(server.ok());
  online_.control = (*server)->address();
  EXPECT_EQ(download_to("copy", {"thread_0/index.atf"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("has no file thread_0/index.atf")) << "it is not packed";
  packed.add_file("lanes.packed", "table");
  ASSERT_EQ(download_to("copy", {"thread_0/index.atf"}), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  EXPECT_EQ(download_to("copy", {"thread_0/core"}), 1);
}

TEST_F(DownloadTest, ListsAndDeletes) {
  EXPECT_EQ(list_files(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("700,000  thread_0/index.atf"));
  EXPECT_EQ(list_files(json_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"path\":\"manifest.json\",\"size_bytes\":"));
  EXPECT_EQ(delete_session(online_, kSession), 0);
  EXPECT_THAT(out_.str(), HasSubstr("removed 3 files, 4.1 kB"));
  collector_.fail_with({Code::kUnsupported, "it is not sealed yet"});
  EXPECT_EQ(delete_session(online_, kSession), 1);
  EXPECT_THAT(err_.str(), HasSubstr("collectctl: it is not sealed yet"));
}

// What another version of the file left is longer than the file.
TEST_F(DownloadTest, RestartsAPartThatIsTooLong) {
  ASSERT_EQ(download_to("copy", {"manifest.json"}), 0);
  const fs::path part = directory_ / "copy/thread_0/index.atf.part";
  fs::create_directories(part.parent_path());
  std::ofstream(part) << std::string(index_.size() + 1, 'x');
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  EXPECT_FALSE(fs::exists(part));
  // As long as the file is: it is whole, and takes its name when the collector has said so.
  fs::rename(directory_ / "copy/thread_0/index.atf", part);
  out_.str("");
  ASSERT_EQ(download_to("copy"), 0) << err_.str();
  EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  EXPECT_THAT(out_.str(), HasSubstr("1 files, 0 B; 1 were there already"));
}

// Process, recording and start together tell a session from others.
TEST_F(DownloadTest, SessionIsKnownByItsProcessRecordingAndStart) {
  storage::Manifest made;
  made.identity.process_id[0] = 1;
  made.identity.recording = 1;
  made.identity.start_unix_ns = 1'700'000'000'000'000'000;
  made.state = storage::SessionState::kComplete;
  const auto code_beside = [&](const std::string& present) {
    fs::remove_all(directory_ / "copy");
    fs::create_directories(directory_ / "copy");
    std::ofstream(directory_ / "copy/manifest.json") << present;
    return download_to("copy");
  };
  EXPECT_EQ(code_beside(storage::manifest_to_json(made)), 0);
  storage::Manifest other = made;
  other.identity.process_id[0] = 2;
  EXPECT_EQ(code_beside(storage::manifest_to_json(other)), 1);
  other = made;
  other.identity.recording = 2;
  EXPECT_EQ(code_beside(storage::manifest_to_json(other)), 1);
  other = made;
  other.identity.start_unix_ns += 1;
  EXPECT_EQ(code_beside(storage::manifest_to_json(other)), 1);
  EXPECT_EQ(code_beside("{}"), 1);
  // Of other programs nothing but the text is known.
  collector_.add_file("manifest.json", "{}");
  EXPECT_EQ(code_beside("{}"), 0);
  EXPECT_EQ(code_beside("{ }"), 1);
}

// Every state but those of a recording is sealed: what is there with its size is kept.
TEST_F(DownloadTest, KeepsCompleteFilesOfSealedSessions) {
  for (const auto state :
       {api::SESSION_STATE_COMPLETE, api::SESSION_STATE_RECOVERED, api::SESSION_STATE_FAILED}) {
    collector_.add_session(kSession, state);
    fs::remove_all(directory_ / "copy");
    ASSERT_EQ(download_to("copy"), 0);
    out_.str("");
    ASSERT_EQ(download_to("copy"), 0);
    EXPECT_THAT(out_.str(), HasSubstr("; 2 were there already")) << state;
    EXPECT_EQ(err_.str(), "");
    std::ofstream(directory_ / "copy/thread_0/index.atf") << "shorter";
    ASSERT_EQ(download_to("copy"), 0);
    EXPECT_EQ(content_of(directory_ / "copy/thread_0/index.atf"), index_);
  }
  for (const auto state :
       {api::SESSION_STATE_ACTIVE, api::SESSION_STATE_INTERRUPTED, api::SESSION_STATE_SEALING}) {
    collector_.add_session(kSession, state);
    err_.str("");
    out_.str("");
    ASSERT_EQ(download_to("copy"), 0);
    EXPECT_THAT(err_.str(), HasSubstr("still records")) << state;
    EXPECT_THAT(out_.str(), HasSubstr(": 1 files, 700 kB; 1 were there already"));
  }
}

}  // namespace
}  // namespace collect::ctl
