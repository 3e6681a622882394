// What the tests of uploads share: sealed sessions, a clock and pauses that take no time, a bucket.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/upload/uploader.h"
#include "storage/model/session_files.h"
#include "tests/daemon/upload/fake_s3.h"
#include "tests/storage/session_fixture.h"
#include "tests/storage/session_scenario.h"

namespace collect::upload::test {

// Time passes only where someone pauses.
class PausedTime final : public storage::Clock, public Pauses {
 public:
  uint64_t unix_ns() override { return storage::system_clock().unix_ns() + passed_ns_; }
  uint64_t monotonic_ns() override { return 1'000'000'000 + passed_ns_; }
  bool pause(uint64_t ns) override {
    passed_ns_ += ns;
    if (on_pause) on_pause();
    const std::lock_guard lock(mutex_);
    pauses_.push_back(ns);
    return true;
  }
  std::vector<uint64_t> pauses() const {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }
  uint64_t passed_ns() const { return passed_ns_; }

  std::function<void()> on_pause{};  // set before anybody pauses

 private:
  std::atomic<uint64_t> passed_ns_{0};
  mutable std::mutex mutex_;
  std::vector<uint64_t> pauses_;  // guarded by mutex_
};

inline const PartName kPart{"lab-1", "e7"};
// Of the process id and recording of test_identity(): printf '%s' ID-1 | sha256sum.
inline constexpr char kSessionKey[] = "0102030405060708090a0b0c0d0e0f10-1";

class UploadTest : public ::testing::Test {
 protected:
  static FakeS3& server() {
    static FakeS3 fake;
    return fake;
  }
  void SetUp() override {
    server().clear();
    server().set({{"min_part", 1}});
  }

  // Sealed, with two threads and details.
  storage::SessionPath make_session(uint32_t recording = 1) {
    storage::SessionOptions options;
    options.root = root_.path();
    options.clock = &session_clock_;
    options.symbolize = false;
    options.keep_free_bytes = 0;
    options.keep_free_files = 0;
    storage::SessionIdentity identity = storage::test::test_identity();
    identity.recording = recording;
    identity.device_id = "phone 7";
    storage::test::Scenario scenario;
    EXPECT_OK(scenario.run(fs_, options, identity));
    session_clock_.unix += 10'000'000'000;
    const auto name = scenario.directory.substr(root_.path().size() + 1);
    return *storage::parse_session_path(root_.path(), name);
  }
  UploadSettings settings() {
    UploadSettings settings;
    settings.s3 = server().settings();
    return settings;
  }
  // The manifest goes in parts.
  UploadSettings small_parts() {
    UploadSettings small = settings();
    small.sizes = {1500, 700};
    return small;
  }
  std::unique_ptr<Uploader> start(const UploadSettings& wanted) {
    auto uploader =
        Uploader::start(wanted, {fs_, time_, source_,
                                 [this](const storage::SessionPath& session_path) -> Status {
                                   const auto removed = storage::remove_session(fs_, session_path);
                                   return removed.ok() ? Status() : Status(removed.error());
                                 },
                                 &time_, tables_});
    EXPECT_OK(uploader);
    return std::move(*uploader);
  }
  UploadStatus upload(const UploadSettings& wanted,
                      const std::vector<storage::SessionPath>& session_paths) {
    const auto uploader = start(wanted);
    for (const auto& session_path : session_paths) EXPECT_OK(uploader->add(session_path, kPart));
    EXPECT_TRUE(uploader->wait_idle(60'000)) << uploader->status().problem;
    return uploader->status();
  }
  // What a reader of the bucket sees: key -> MD5 of the bytes.
  static std::map<std::string, std::string> bucket() {
    std::map<std::string, std::string> content;
    const nlohmann::json objects = server().objects();
    for (const auto& [key, object] : objects.items()) content[key] = object["md5"];
    return content;
  }
  static size_t count(const std::string& method, const std::string& part = "") {
    size_t found = 0;
    for (const LoggedRequest& request : server().log()) {
      if (request.method == method && request.words().find(part) != std::string::npos) ++found;
    }
    return found;
  }

  storage::PosixFs fs_;
  storage::test::FakeClock session_clock_;
  storage::test::TemporaryDirectory root_;
  PausedTime time_;
  WantedTables tables_;
  StaticCredentials source_{FakeS3::credentials()};
};

}  // namespace collect::upload::test
