#include "daemon/ctl/check/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using testing::fs::path;

class Verify : public testing::OfflineTest {
 protected:
  int run(const path& where, bool strict = false, bool allow_incomplete = false) {
    out_.str("");
    err_.str("");
    VerifyOptions options;
    options.path = where.string();
    options.strict = strict;
    options.allow_incomplete = allow_incomplete;
    return verify(options, out_, err_);
  }
  json as_json() {
    out_.str("");
    VerifyOptions options;
    options.path = session_.string();
    options.json = true;
    verify(options, out_, err_);
    return json::parse(out_.str());
  }
  size_t lines() const {
    const std::string text = out_.str();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Writes the manifest with one text replaced, and gives what verify finds.
  std::string with_manifest(const std::string& from, const std::string& to) {
    std::string manifest = planned_manifest();
    const size_t at = manifest.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    manifest.replace(at, from.size(), to);
    write_text(session_ / "manifest.json", manifest);
    code_ = run(session_);
    return out_.str();
  }
  int code_ = -1;
};

TEST_F(Verify, GoodSessionIsOneOkLine) {
  write_planned_session();
  EXPECT_EQ(run(session_), 0);
  EXPECT_EQ(out_.str(), "ok: " + session_.string() + ": 1 thread, 12 events, 4 details, 0 lost\n");
  EXPECT_EQ(run(session_, /*strict=*/true), 0) << out_.str();
  EXPECT_EQ(run(session_ / "thread_0"), 0) << out_.str();
  EXPECT_EQ(run(session_ / "thread_0" / "index.atf"), 0) << out_.str();
  EXPECT_EQ(run(session_ / "thread_0" / "detail.atf"), 0) << out_.str();
}

TEST_F(Verify, EachFindingIsOneLineWithPathAndOffset) {
  write_planned_session();
  auto bytes = atf::testing::file_bytes(session_ / "thread_0" / "index.atf");
  bytes[64 + 32 * 2 + 24] = 9;  // the kind of event 2
  atf::testing::write_file(session_ / "thread_0" / "index.atf", bytes);
  EXPECT_EQ(run(session_), 1);
  const std::string file = (session_ / "thread_0" / "index.atf").string();
  EXPECT_EQ(out_.str(), file + ": offset 452: the checksum of the events section does not match\n" +
                            file +
                            ": offset 152: 1 events of unknown kind, the first is event 2\n");
}

TEST_F(Verify, ExitsWithTwoForUnreadablePaths) {
  EXPECT_EQ(run(root_ / "nowhere"), 2);
  EXPECT_NE(err_.str().find("nowhere"), std::string::npos);
  EXPECT_EQ(run(root_), 2) << "no session in it";
  EXPECT_TRUE(out_.str().empty());
}

TEST_F(Verify, DirectoryAboveSessionsMeansTheNewestAndSaysSo) {
  write_planned_session();
  const path newest = root_ / "session_20250102_030405_10" / "pid_7";
  const path older = root_ / "session_20250102_030405_9" / "pid_7";
  for (const path& session : {newest, older}) {
    testing::fs::create_directories(session.parent_path());
    testing::fs::copy(session_, session, testing::fs::copy_options::recursive);
  }
  EXPECT_EQ(run(root_), 0);
  EXPECT_NE(out_.str().find(newest.string()), std::string::npos) << out_.str();
  EXPECT_NE(err_.str().find("the newest of 3 sessions"), std::string::npos) << err_.str();
  EXPECT_EQ(run(older.parent_path()), 0);
  EXPECT_NE(err_.str().find("the only session"), std::string::npos) << err_.str();
}

TEST_F(Verify, UnfinalizedSessionIsNotOkUnlessThatIsAllowed) {
  atf::testing::ThreadPlan plan;
  plan.finalize = false;
  write_thread(0, build_thread(plan).index);
  write_text(session_ / "manifest.json", R"({"threads":[{"id":0}],"state":"recording"})");
  EXPECT_EQ(run(session_), 1);
  EXPECT_TRUE(out_.str().starts_with(session_.string() + ": recording: not sealed")) << out_.str();
  EXPECT_EQ(run(session_ / "thread_0" / "index.atf"), 1);
  EXPECT_NE(out_.str().find("was never finalized"), std::string::npos) << out_.str();
  EXPECT_EQ(run(session_, /*strict=*/false, /*allow_incomplete=*/true), 0);
  EXPECT_NE(out_.str().find("\nrecording: "), std::string::npos) << out_.str();
}

// The files hold, and yet the session is not all that was recorded.
TEST_F(Verify, FailedSessionIsNeverOk) {
  write_planned_session();
  const std::string found =
      with_manifest(R"("state":"complete")", R"("state":"failed","reason":"no space")");
  EXPECT_EQ(code_, 1);
  EXPECT_EQ(found, session_.string() +
                       ": failed: storing ended (no space), and everything after it is missing; "
                       "how much is not known\n");
  const json said = as_json();
  EXPECT_EQ(said["result"], "failed");
  EXPECT_EQ(said["ok"], false);
  EXPECT_EQ(said["losses_known"], false);
  EXPECT_EQ(run(session_, /*strict=*/false, /*allow_incomplete=*/true), 0);
  EXPECT_NE(out_.str().find("failed: " + session_.string() +
                            ": 1 thread, 12 events, 4 details, 0 known to be lost"),
            std::string::npos)
      << out_.str();
}

TEST_F(Verify, RecoveredSessionSaysThatTheLossIsNotKnown) {
  write_planned_session();
  const std::string found = with_manifest(R"("state":"complete")", R"("state":"recovered")");
  EXPECT_EQ(code_, 1);
  EXPECT_NE(found.find(": recovered: "), std::string::npos) << found;
  EXPECT_NE(found.find("how much is not known"), std::string::npos) << found;
}

TEST_F(Verify, CompleteSessionWithoutAThreadsEndIsNotOk) {
  write_planned_session();
  const std::string found = with_manifest(R"("ended":true)", R"("ended":false)");
  EXPECT_EQ(code_, 1);
  EXPECT_NE(found.find("the end of 1 thread never came"), std::string::npos) << found;
}

TEST_F(Verify, ManifestWithoutAnEndStateIsNotOk) {
  write_planned_session();
  const std::string found = with_manifest(R"("ended":true,)", "");
  EXPECT_EQ(code_, 1);
  EXPECT_NE(found.find("the end of 1 thread never came"), std::string::npos) << found;
}

TEST_F(Verify, DoesNotClaimCompletenessForForeignSessions) {
  write_planned_session();
  const std::string found = with_manifest(R"("state":"complete",)", "");
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(found,
            "ok: " + session_.string() + ": 1 thread, 12 events, 4 details, 0 known to be lost\n");
}

TEST_F(Verify, DoesNotKnowLossesWithoutAManifest) {
  write_planned_session();
  testing::fs::remove(session_ / "manifest.json");
  EXPECT_EQ(run(session_), 1);
  EXPECT_NE(out_.str().find("warning:"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find(session_.string() +
                            ": recovered: there is no manifest, so whether something is missing, "
                            "and how much, is not known\n"),
            std::string::npos)
      << out_.str();
  EXPECT_EQ(lines(), 2u);
  EXPECT_EQ(run(session_, false, true), 0) << "accepted with --allow-incomplete";
  write_text(session_ / "manifest.json", "{");
  EXPECT_EQ(run(session_), 1);
  EXPECT_NE(out_.str().find("recovered: the manifest cannot be read, so"), std::string::npos)
      << out_.str();
}

TEST_F(Verify, ManifestMustAgreeWithTheFiles) {
  write_planned_session();
  EXPECT_NE(with_manifest("\"events\":12,\n", "\"events\":13,\n")
                .find("/threads/0/events: says 13 events, the files have 12"),
            std::string::npos)
      << out_.str();
  EXPECT_EQ(code_, 1);
  EXPECT_NE(with_manifest("\"detail_records\":4,\"lost", "\"detail_records\":5,\"lost")
                .find("/threads/0/detail_records: says 5"),
            std::string::npos);
  EXPECT_NE(with_manifest("\"thread_id\":4711", "\"thread_id\":4712")
                .find("/threads/0/thread_id: says 4712"),
            std::string::npos);
  EXPECT_NE(with_manifest("\"totals\":{\"events\":12", "\"totals\":{\"events\":99")
                .find("/totals/events: says 99"),
            std::string::npos);
  EXPECT_EQ(code_, 1);
}

TEST_F(Verify, LossesMustAddUp) {
  write_planned_session();
  EXPECT_NE(with_manifest("\"lost_events\":0,\"lost_detail", "\"lost_events\":3,\"lost_detail")
                .find("/threads/0/lost_events: says 3 lost, the gaps explain 0"),
            std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("/totals/lost_events: says 0 lost, the threads say 3"),
            std::string::npos);
  EXPECT_EQ(code_, 1);
}

TEST_F(Verify, FunctionIdsOfSymbolsMustBeHexAndFit) {
  write_planned_session();
  EXPECT_NE(with_manifest("\"0x100\"", "256").find("/symbols/0/function_id: is no hex string"),
            std::string::npos)
      << out_.str();
  EXPECT_EQ(code_, 1);
  EXPECT_NE(with_manifest("\"0x100\"", "\"0x11111111111111111\"").find("is no hex string"),
            std::string::npos);
  EXPECT_NE(with_manifest("\"0x100\"", "\"0x101\"").find("do not make up"), std::string::npos);
}

// Seen: all of these were ok. RFC 8259: no control characters in strings, UTF-8 alone.
TEST_F(Verify, BytesThatJsonDoesNotHaveAreFound) {
  using namespace std::string_literals;
  write_planned_session();
  for (const auto& [bytes, sentence] :
       {std::pair("\0"s, "a NUL byte"s), std::pair("\x01"s, "a control character"s),
        std::pair("\xC3("s, "a byte that is not UTF-8"s),
        std::pair("\xED\xA0\x80"s, "a byte that is not UTF-8"s)}) {
    const std::string found = with_manifest("parse(char*)", "parse" + bytes);
    EXPECT_EQ(code_, 1) << sentence;
    EXPECT_NE(found.find("offset 561: " + sentence), std::string::npos) << found;
  }
  // Behind a NUL a parser may see nothing.
  write_text(session_ / "manifest.json", planned_manifest() + "\0{"s);
  EXPECT_EQ(run(session_), 1);
  EXPECT_NE(out_.str().find("a NUL byte"), std::string::npos) << out_.str();
  // In files of others that is known.
  std::string manifest = planned_manifest();
  manifest.replace(manifest.find("\"state\":\"complete\","), 19, "");
  manifest.replace(manifest.find("main"), 4, "ma\x01n");
  write_text(session_ / "manifest.json", manifest);
  EXPECT_EQ(run(session_), 0);
  EXPECT_NE(out_.str().find("warning: offset"), std::string::npos) << out_.str();
  EXPECT_EQ(run(session_, /*strict=*/true), 1);
}

TEST_F(Verify, ListOfOtherThreadsIsAWarning) {
  write_planned_session();
  const std::string found = with_manifest("{\"id\":0,", "{\"id\":5,");
  EXPECT_NE(found.find("/threads: warning: lists other threads"), std::string::npos) << found;
  EXPECT_EQ(code_, 0);
}

TEST_F(Verify, SessionThatRecordedNothingIsOk) {
  write_text(session_ / "manifest.json", R"({"threads":[],"state":"complete"})");
  EXPECT_EQ(run(session_), 0);
  EXPECT_TRUE(out_.str().starts_with("ok: ")) << out_.str();
}

TEST_F(Verify, UnreadableIndexIsItsThreadsFinding) {
  write_planned_session();
  testing::fs::create_directories(session_ / "thread_1" / "index.atf");
  EXPECT_EQ(run(session_), 1);
  EXPECT_NE(out_.str().find("not a regular file"), std::string::npos) << out_.str();
}

TEST_F(Verify, JsonCarriesTheSameFindings) {
  write_planned_session();
  auto bytes = atf::testing::file_bytes(session_ / "thread_0" / "detail.atf");
  bytes[70] = static_cast<uint8_t>(bytes[70] ^ 1);  // flags of the first record
  atf::testing::write_file(session_ / "thread_0" / "detail.atf", bytes);
  VerifyOptions options;
  options.path = session_.string();
  options.json = true;
  EXPECT_EQ(verify(options, out_, err_), 1);
  const json document = json::parse(out_.str());
  EXPECT_EQ(document["result"], "damaged");
  EXPECT_EQ(document["ok"], false);
  EXPECT_EQ(document["events"], 12);
  ASSERT_EQ(document["findings"].size(), 1u);
  EXPECT_EQ(document["findings"][0]["check"], "checksum");
  EXPECT_EQ(document["findings"][0]["severity"], "error");
  EXPECT_EQ(document["findings"][0]["path"], (session_ / "thread_0" / "detail.atf").string());
}

// The samples' own outcomes: ok is 0, everything else is 1.
TEST_F(Verify, Samples) {
  const auto folders = atf::testing::sample_folders("data/atf");
  size_t compared = 0;
  for (const char* group : {".", "v1", "v2"}) {
    for (const auto& folder : folders) {
      for (const path& expected_path : atf::testing::files_with(folder / group, ".expected.json")) {
        const std::string name = expected_path.string();
        const path sample = name.substr(0, name.size() - std::string(".expected.json").size());
        const json expected = json::parse(atf::testing::file_bytes(name));
        const bool fine = expected["result"] == "ok";
        EXPECT_EQ(run(sample), fine ? 0 : 1) << sample << "\n" << out_.str();
        EXPECT_GE(lines(), 1u);
        VerifyOptions options;
        options.path = sample.string();
        options.json = true;
        out_.str("");
        verify(options, out_, err_);
        EXPECT_EQ(json::parse(out_.str())["result"], expected["result"]) << sample;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, folders.size() == 1 ? 40u : 40u + 41u);
}

}  // namespace
}  // namespace collect::ctl
