#include "daemon/upload/uploader.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/upload/commit.h"
#include "daemon/upload/s3/digests.h"
#include "formats/core/crc32.h"
#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using nlohmann::json;
using ::testing::_;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Pair;

// The first digits of the key's SHA-256, by sha256sum.
const std::string kPrefix =
    std::string("v1/9d/device=phone%207/session=") + kSessionKey + "/part=lab-1-e7/";

class UploaderTest : public UploadTest {
 protected:
  static std::string unpacked(const std::string& object, size_t bytes) {
    std::string out(bytes + 1, '\0');
    const size_t got = ZSTD_decompress(out.data(), out.size(), object.data(), object.size());
    EXPECT_FALSE(ZSTD_isError(got));
    out.resize(ZSTD_isError(got) ? 0 : got);
    return out;
  }
  static std::string file_text(const std::string& path) {
    const auto bytes = storage::test::read_file(path);
    return std::string(text_of(bytes));
  }
};

TEST_F(UploaderTest, SessionBecomesObjectsAndCommitComesLast) {
  const auto session_path = make_session();
  const UploadStatus status = upload(settings(), {session_path});
  EXPECT_EQ(status.committed_sessions, 1u);
  EXPECT_EQ(status.pending_sessions, 0u);
  EXPECT_EQ(status.pending_bytes, 0u);
  EXPECT_EQ(status.problem, "");
  std::vector<std::string> keys;
  for (const auto& [key, digest] : bucket()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre(kPrefix + "COMMIT", kPrefix + "manifest.json", kPrefix + "switches.bin",
                          kPrefix + "thread=0/detail.atf.zst", kPrefix + "thread=0/index.atf.zst",
                          kPrefix + "thread=1/detail.atf.zst", kPrefix + "thread=1/index.atf.zst"));
  const auto log = server().log();
  EXPECT_EQ(log.back().key, kPrefix + "COMMIT");

  const auto commit = commit_from_json(server().body(kPrefix + "COMMIT"));
  ASSERT_OK(commit);
  EXPECT_EQ(commit->session, session_path.name);
  EXPECT_EQ(commit->process_id + "-1", kSessionKey);
  EXPECT_EQ(commit->device_id, "phone 7");
  EXPECT_EQ(commit->state, "complete");
  EXPECT_EQ(commit->part.collector, "lab-1");
  ASSERT_EQ(commit->files.size(), 6u);
  uint64_t bytes = 0;
  for (const CommittedFile& file : commit->files) {
    const std::string local = file_text(session_path.directory + "/" + file.path);
    const std::string object = server().body(kPrefix + file.object);
    EXPECT_EQ(file.bytes, local.size());
    EXPECT_EQ(file.crc32c, crc32c(bytes_of(local)));
    EXPECT_EQ(file.object_bytes, object.size());
    EXPECT_EQ(file.object_crc32c, crc32c(bytes_of(object)));
    EXPECT_EQ(file.is_compressed ? unpacked(object, local.size()) : object, local) << file.path;
    bytes += file.bytes;
  }
  EXPECT_EQ(status.committed_bytes, bytes);
  const json objects = server().objects();
  EXPECT_EQ(objects[kPrefix + "manifest.json"]["type"], "application/json");
  EXPECT_EQ(objects[kPrefix + "thread=0/index.atf.zst"]["type"], "application/zstd");
}

// Scenario: thread 0 stores its events 0–7 and 11–21; details 0–17; thread 1 has no loss.
TEST_F(UploaderTest, CommitNamesTheAgentsNumbers) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const auto commit = commit_from_json(server().body(kPrefix + "COMMIT"));
  ASSERT_OK(commit);
  ASSERT_EQ(commit->threads.size(), 2u);
  EXPECT_THAT(commit->threads[0].index.ranges, ElementsAre(NumberRange{0, 8}, NumberRange{11, 22}));
  EXPECT_EQ(commit->threads[0].events, 19u);
  EXPECT_TRUE(commit->threads[0].index.is_exact);
  EXPECT_THAT(commit->threads[1].index.ranges, ElementsAre(NumberRange{0, 9}));
  EXPECT_THAT(commit->threads[1].detail.ranges, ElementsAre(NumberRange{0, 9}));
}

TEST_F(UploaderTest, DoesNotResendCommittedSessions) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const auto before = bucket();
  server().set({{"min_part", 1}});
  const UploadStatus again = upload(settings(), {session_path});
  EXPECT_EQ(again.present_sessions, 1u);
  EXPECT_EQ(again.sent_bytes, 0u);
  EXPECT_EQ(count("PUT"), 0u);
  EXPECT_EQ(bucket(), before);
}

TEST_F(UploaderTest, OldestFirst) {
  const auto first = make_session(1);
  const auto second = make_session(2);
  const auto third = make_session(3);
  // The first one is held up until all are there.
  std::promise<void> added;
  const auto all_added = added.get_future().share();
  time_.on_pause = [all_added] { all_added.wait(); };
  server().set(
      {{"faults", {{{"at", 0}, {"kind", "status"}, {"status", 503}, {"code", "SlowDown"}}}}});
  const auto uploader = start(settings());
  EXPECT_OK(uploader->add(third, kPart));
  while (uploader->status().retries.empty()) std::this_thread::yield();
  EXPECT_OK(uploader->add(second, kPart));
  EXPECT_OK(uploader->add(first, kPart));
  EXPECT_OK(uploader->add(first, kPart));
  EXPECT_EQ(uploader->status().pending_sessions, 3u);
  // The name has its second.
  EXPECT_EQ(uploader->status().oldest_unix_ns,
            (session_clock_.unix - 30'000'000'000) / 1'000'000'000 * 1'000'000'000);
  added.set_value();
  EXPECT_TRUE(uploader->wait_idle(60'000));
  std::vector<std::string> commits;
  for (const LoggedRequest& request : server().log()) {
    if (request.method == "PUT" && request.key.ends_with("COMMIT")) commits.push_back(request.key);
  }
  EXPECT_THAT(commits, ElementsAre(HasSubstr("10-3/"), HasSubstr("10-1/"), HasSubstr("10-2/")));
}

TEST_F(UploaderTest, BurstOf503PassesWithFullJitter) {
  server().set(
      {{"faults",
        {{{"at", 1}, {"to", 6}, {"kind", "status"}, {"status", 503}, {"code", "SlowDown"}}}}});
  const UploadStatus status = upload(settings(), {make_session()});
  EXPECT_EQ(status.committed_sessions, 1u);
  EXPECT_EQ(status.failed_runs, 0u);
  EXPECT_EQ(status.retries.at(503), 6u);
  const auto pauses = time_.pauses();
  ASSERT_GE(pauses.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_LE(pauses[i], (100ull << i) * kNsPerMs);
}

// One whose object the server never takes does not stop the others, and is taken when that ends.
TEST_F(UploaderTest, SessionThatAlwaysFailsLetsOthersGoFirst) {
  const auto first = make_session(1);
  const auto second = make_session(2);
  const auto third = make_session(3);
  server().set({{"faults",
                 {{{"at", 0},
                   {"to", 1000},
                   {"key", "0f10-1/"},
                   {"kind", "status"},
                   {"status", 500},
                   {"code", "InternalError"}}}}});
  const auto uploader = start(settings());
  for (const auto& session_path : {first, second, third})
    EXPECT_OK(uploader->add(session_path, kPart));
  while (uploader->status().committed_sessions < 2) std::this_thread::yield();
  EXPECT_EQ(uploader->status().pending_sessions, 1u);
  EXPECT_EQ(count("PUT", "0f10-3/part=lab-1-e7/COMMIT"), 1u);
  server().set({{"faults", json::array()}});
  EXPECT_TRUE(uploader->wait_idle(60'000));
  EXPECT_EQ(uploader->status().committed_sessions, 3u);
}

// When it is the bucket that fails, however long, the oldest session is the first afterwards.
TEST_F(UploaderTest, AfterAnOutageTheOldestIsFirst) {
  const auto first = make_session(1);
  const auto second = make_session(2);
  UploadSettings once = settings();
  once.retry.attempts = 1;
  // Turns of the first (three), the second (one, which fails too), then the first again.
  server().set(
      {{"faults",
        {{{"at", 0}, {"to", 3}, {"kind", "status"}, {"status", 500}, {"code", "InternalError"}}}}});
  std::promise<void> added;
  const auto both = added.get_future().share();
  time_.on_pause = [both] { both.wait(); };
  const auto uploader = start(once);
  EXPECT_OK(uploader->add(first, kPart));
  while (uploader->status().failed_runs == 0) std::this_thread::yield();
  EXPECT_OK(uploader->add(second, kPart));
  added.set_value();
  EXPECT_TRUE(uploader->wait_idle(60'000));
  EXPECT_EQ(uploader->status().failed_runs, 4u);
  std::vector<std::string> commits;
  for (const LoggedRequest& request : server().log()) {
    if (request.method == "PUT" && request.key.ends_with("COMMIT")) commits.push_back(request.key);
  }
  EXPECT_THAT(commits, ElementsAre(HasSubstr("10-1/"), HasSubstr("10-2/")));
}

TEST_F(UploaderTest, KeepsDataAndRetriesRefusedCredentialsEachMinute) {
  server().set(
      {{"faults",
        {{{"at", 0}, {"to", 2}, {"kind", "status"}, {"status", 403}, {"code", "AccessDenied"}},
         {{"at", 3}, {"to", 3}, {"kind", "status"}, {"status", 404}, {"code", "NoSuchBucket"}}}}});
  UploadSettings removing = settings();
  removing.keep_local = {KeepUntil::kCommitted};
  const auto session_path = make_session();
  const UploadStatus status = upload(removing, {session_path});
  EXPECT_EQ(status.failed_runs, 4u);
  EXPECT_EQ(status.committed_sessions, 1u);
  EXPECT_EQ(status.problem, "");
  EXPECT_GE(time_.passed_ns(), 240ull * 1'000'000'000);
  EXPECT_EQ(status.removed_sessions, 1u);
  EXPECT_FALSE(fs_.exists(session_path.directory));
}

TEST_F(UploaderTest, DoesNotResendPartsAfterABreak) {
  const auto session_path = make_session();
  // LIST, uploads, manifest: create, part 1, part 2 …
  UploadSettings fragile = small_parts();
  fragile.retry.attempts = 1;
  server().set(
      {{"min_part", 1},
       {"faults", {{{"at", 5}, {"kind", "status"}, {"status", 500}, {"code", "InternalError"}}}}});
  const UploadStatus status = upload(fragile, {session_path});
  EXPECT_EQ(status.failed_runs, 1u);
  EXPECT_EQ(status.committed_sessions, 1u);
  const auto log = server().log();
  ASSERT_GT(log.size(), 9u);
  EXPECT_THAT(log[4].query, HasSubstr("partNumber=2"));
  EXPECT_THAT(log[5].query, HasSubstr("partNumber=3"));
  EXPECT_EQ(count("GET", "max-parts"), 1u);
  EXPECT_EQ(count("POST", "uploads="), 1u);
  EXPECT_EQ(count("PUT", "partNumber=2"), 1u);
  EXPECT_EQ(count("PUT", "partNumber=3"), 2u);
  EXPECT_TRUE(server().uploads().empty());
}

// Of several that were begun, the one that has come furthest continues, and the others are ended.
TEST_F(UploaderTest, ContinuesTheFurthestOpenUpload) {
  const auto session_path = make_session();
  auto client = S3Client::create(server().settings(), source_, storage::system_clock());
  const std::string key = kPrefix + "manifest.json";
  const auto bytes = storage::test::read_file(session_path.directory + "/manifest.json");
  const Bytes first = Bytes(bytes).first(700);
  EXPECT_OK((*client)->create_upload(key, "x"));
  const auto id = (*client)->create_upload(key, "x");
  EXPECT_OK(id);
  EXPECT_OK((*client)->upload_part(key, *id, 1, first, crc32c(first)));
  EXPECT_OK((*client)->create_upload(key, "x"));
  server().set({{"min_part", 1}});
  EXPECT_EQ(upload(small_parts(), {session_path}).committed_sessions, 1u);
  EXPECT_EQ(count("PUT", "partNumber=1&"), 0u);
  EXPECT_EQ(count("POST", "uploads="), 0u);
  EXPECT_EQ(server().body(key), std::string(text_of(bytes)));
  EXPECT_TRUE(server().uploads().empty());
}

TEST_F(UploaderTest, ObjectsThatAreThereAreKnownByTheirChecksums) {
  const auto session_path = make_session();
  UploadSettings fragile = small_parts();
  upload(fragile, {session_path});
  const auto whole = bucket();
  // As if it had been killed before COMMIT.
  auto client = S3Client::create(server().settings(), source_, storage::system_clock());
  EXPECT_OK((*client)->remove(kPrefix + "COMMIT"));
  server().set({{"min_part", 1}});
  const UploadStatus status = upload(fragile, {session_path});
  EXPECT_EQ(status.committed_sessions, 1u);
  EXPECT_EQ(status.sent_bytes, 0u);
  EXPECT_EQ(count("PUT"), 1u);
  EXPECT_EQ(bucket(), whole);
}

TEST_F(UploaderTest, AnotherCommitStaysAndSoDoTheFiles) {
  const auto session_path = make_session();
  UploadSettings removing = settings();
  upload(removing, {session_path});
  const auto before = bucket();
  removing.keep_local = {KeepUntil::kCommitted};
  storage::test::write_file(session_path.directory + "/thread_1/index.atf", {1, 2, 3});
  const UploadStatus status = upload(removing, {session_path});
  EXPECT_EQ(status.refused_sessions, 1u);
  EXPECT_EQ(status.removed_sessions, 0u);
  EXPECT_THAT(status.problem, HasSubstr("thread_1/index.atf differs"));
  EXPECT_TRUE(fs_.exists(session_path.directory));
  EXPECT_EQ(bucket(), before);
}

TEST_F(UploaderTest, DamagedCommitRemovesNothing) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  server().damage(kPrefix + "COMMIT", 0);
  UploadSettings removing = settings();
  removing.keep_local = {KeepUntil::kCommitted};
  const auto uploader = start(removing);
  EXPECT_OK(uploader->add(session_path, kPart));
  while (uploader->status().failed_runs == 0) std::this_thread::yield();
  EXPECT_THAT(uploader->status().problem, HasSubstr("COMMIT: "));
  EXPECT_EQ(uploader->status().removed_sessions, 0u);
  EXPECT_TRUE(fs_.exists(session_path.directory + "/manifest.json"));
}

TEST_F(UploaderTest, FilesStayForTheDaysThatWereAskedFor) {
  const auto session_path = make_session();
  UploadSettings days = settings();
  days.keep_local = {KeepUntil::kDays, 2};
  // The session's clock is years ahead of this machine's: kDays after then.
  const auto uploader = start(days);
  EXPECT_OK(uploader->add(session_path, kPart));
  while (uploader->status().removed_sessions == 0) std::this_thread::yield();
  EXPECT_FALSE(fs_.exists(session_path.directory));
  const auto manifest_end = session_clock_.unix - 10'000'000'000;
  EXPECT_GE(time_.unix_ns(), manifest_end + 2 * 86'400ull * 1'000'000'000);
  EXPECT_GT(bucket().size(), 1u);
}

TEST_F(UploaderTest, RateIsKeptOverManySmallObjects) {
  UploadSettings slow = settings();
  slow.s3.max_bytes_per_s = 1'000'000;
  const UploadStatus status = upload(slow, {make_session()});
  EXPECT_GE(time_.passed_ns(), status.sent_bytes * 1000);
  EXPECT_LT(time_.passed_ns(), status.sent_bytes * 1000 + 1'000'000);
}

// "a.parquet" goes with one PUT, "b.parquet" in parts.
class TablesTest : public UploaderTest {
 protected:
  TablesTest() {
    tables_.names = {"a.parquet", "b.parquet"};
    tables_.make = [this](const storage::SessionPath&) -> Result<TableFiles> {
      ++made_;
      if (refused_) return *refused_;
      const auto directory = std::make_shared<storage::test::TemporaryDirectory>();
      storage::test::write_file(directory->path() + "/a.parquet", {'a'});
      storage::test::write_file(directory->path() + "/b.parquet", std::vector<uint8_t>(4000, 'b'));
      return TableFiles{directory->path(), directory};
    };
  }
  static std::vector<std::string> tables() {
    std::vector<std::string> found;
    for (const auto& [key, md5] : bucket()) {
      if (const size_t at = key.find("/tables/"); at != std::string::npos) {
        found.push_back(key.substr(at + 1));
      }
    }
    return found;
  }

  std::optional<Error> refused_;
  std::atomic<int> made_{0};
};

TEST_F(TablesTest, StandBesideTheSessionAndAreMadeOnce) {
  const auto session_path = make_session();
  EXPECT_EQ(upload(small_parts(), {session_path}).committed_sessions, 1u);
  EXPECT_THAT(tables(), ElementsAre("tables/a.parquet", "tables/b.parquet"));
  const UploadStatus again = upload(small_parts(), {session_path});
  EXPECT_EQ(again.present_sessions, 1u);
  EXPECT_EQ(again.sent_bytes, 0u);
  EXPECT_EQ(made_, 1);
}

// COMMIT does not wait for them; what lacks them gets them by a later run.
TEST_F(TablesTest, InterruptedRunIsEndedByALaterOne) {
  const auto session_path = make_session();
  const WantedTables wanted = std::exchange(tables_, {});
  EXPECT_EQ(upload(small_parts(), {session_path}).committed_sessions, 1u);
  tables_ = wanted;
  // LIST, uploads, COMMIT, a.parquet, then b.parquet: create, parts of 700.
  UploadSettings fragile = small_parts();
  fragile.retry.attempts = 1;
  server().set(
      {{"min_part", 1},
       {"faults", {{{"at", 6}, {"kind", "status"}, {"status", 500}, {"code", "InternalError"}}}}});
  const UploadStatus status = upload(fragile, {session_path});
  EXPECT_EQ(status.failed_runs, 1u);
  EXPECT_EQ(status.present_sessions, 1u);
  EXPECT_THAT(tables(), ElementsAre("tables/a.parquet", "tables/b.parquet"));
  EXPECT_EQ(count("POST", "uploads="), 1u);
  EXPECT_TRUE(server().uploads().empty());
}

TEST_F(TablesTest, CommitsASessionWithoutTablesAndReportsIt) {
  const auto session_path = make_session();
  refused_ = Error{Code::kInvalidArgument, "no tables"};
  UploadSettings removing = small_parts();
  removing.keep_local = {KeepUntil::kCommitted};
  const UploadStatus status = upload(removing, {session_path});
  EXPECT_EQ(status.refused_sessions, 1u);
  EXPECT_THAT(status.problem, HasSubstr("no tables"));
  EXPECT_TRUE(tables().empty());
  EXPECT_THAT(bucket(), Contains(Pair(HasSubstr("/COMMIT"), _)));
  EXPECT_TRUE(fs_.exists(session_path.directory));
}

TEST_F(UploaderTest, NoRecordedSessionNoUpload) {
  const auto uploader = start(settings());
  for (const char* name :
       {"session_20260131_235959_snap1/pid_1", "session_20260131_235959_atf1/pid_1"}) {
    const auto session_path = storage::parse_session_path(root_.path(), name);
    EXPECT_EQ(uploader->add(*session_path, kPart).error().code, Code::kInvalidArgument) << name;
  }
  const auto gone = storage::parse_session_path(root_.path(), "session_20260131_235959/pid_1");
  EXPECT_OK(uploader->add(*gone, kPart));
  EXPECT_TRUE(uploader->wait_idle(60'000));
  EXPECT_EQ(uploader->status().refused_sessions, 1u);
  EXPECT_TRUE(server().log().empty());
}

TEST_F(UploaderTest, SettingsThatCannotBe) {
  UploadSettings wrong = settings();
  wrong.sizes.part_bytes = wrong.sizes.multipart_bytes + 1;
  EXPECT_EQ(Uploader::start(wrong, {fs_, time_, source_}).code(), Code::kInvalidArgument);
  wrong = settings();
  wrong.s3.endpoint = "s3.example";
  EXPECT_EQ(Uploader::start(wrong, {fs_, time_, source_}).code(), Code::kInvalidArgument);
}

TEST_F(UploaderTest, ItEndsWhileARequestHangs) {
  server().set({{"faults", {{{"at", 0}, {"kind", "hang"}}}}});
  auto uploader = start(settings());
  EXPECT_OK(uploader->add(make_session(), kPart));
  while (server().log().empty()) std::this_thread::yield();
  uploader.reset();
  EXPECT_TRUE(bucket().empty());
}

}  // namespace
}  // namespace collect::upload::test
