// Following the files of a session while they grow, as the collector writes them: the index without
// counts and footer, the manifest replaced as a whole.
#include "daemon/ctl/follow/call_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "daemon/ctl/follow/limits.h"
#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl::follow {
namespace {

namespace fs = std::filesystem;
using ctl::testing::kCall;
using ctl::testing::kException;
using ctl::testing::kReturn;
using ctl::testing::Step;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMain = 1, kParse = 2, kSlow = 3;

class CallFollowerTest : public ctl::testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    write_manifest("recording", "");
    append(0, {});
  }

  static FollowOptions of_calls(size_t most) {
    FollowOptions options;
    options.most_calls = most;
    return options;
  }

  // The manifest is a new file each time.
  void write_manifest(const std::string& state, const std::string& gaps, uint64_t lost = 0) {
    const fs::path fresh = session_ / "fresh.json";
    write_text(fresh, R"({"format_version": "2.1", "process": {"switches": )" +
                          std::string(has_switches_ ? "true" : "false") + R"(}, "state": ")" +
                          state +
                          R"(", "threads": [{"id": 0, "thread_id": 70, "name": "main",
                          "lost_events": )" +
                          std::to_string(lost) + R"(}, {"id": 1, "name": "worker"}], "gaps": [)" +
                          gaps + R"(], "symbols": [
                          {"function_id": "0x1", "name": "main"}, {"function_id": "0x2", "name": "parse"},
                          {"function_id": "0x3", "name": "slow"}]})");
    fs::rename(fresh, session_ / "manifest.json");
  }

  // As ingest does it: the header says nothing of counts.
  void append(uint32_t n, const std::vector<Step>& steps) {
    std::vector<Step>& all = written_[n];
    all.insert(all.end(), steps.begin(), steps.end());
    std::vector<uint8_t> file = ctl::testing::index_of(all, 70 + n);
    file.resize(file.size() - atf::kHeaderBytes);  // the footer
    atf::IndexHeader header{atf::Version::kV2, atf::Arch::kX86_64, atf::Os::kLinux,
                            atf::ClockType::kBoottime};
    header.thread_id = 70 + n;
    uint8_t block[atf::kHeaderBytes];
    encode_index_header(header, block);
    std::copy(std::begin(block), std::end(block), file.begin());
    const fs::path directory = session_ / ("thread_" + std::to_string(n));
    fs::create_directories(directory);
    write_text(directory / "index.atf", std::string(file.begin(), file.end()));
  }

  // Of thread 0, as a frame of its own.
  void append_switches(const std::vector<std::pair<uint64_t, uint64_t>>& blocked) {
    std::vector<storage::Stall> switches;
    for (const auto& [first_ns, last_ns] : blocked) {
      switches.push_back(storage::make_stall(storage::StallKind::kBlocked, first_ns, last_ns));
      switches.back().thread = 0;
    }
    const std::vector<uint8_t> frame = storage::encode_switches(switches);
    std::ofstream(session_ / storage::kSwitchesFile, std::ios::app | std::ios::binary)
        .write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
  }

  void follow(const FollowOptions& options = of_calls(100)) {
    auto session = FollowedSession::open(session_.string());
    ASSERT_TRUE(session.ok()) << to_string(session.error());
    followed_ = std::make_unique<FollowedSession>(std::move(*session));
    names_ = std::make_unique<LiveNames>(std::nullopt);
    find_recent_names(*followed_, *names_);
    auto follower = CallFollower::make(*followed_, *names_, options);
    ASSERT_TRUE(follower.ok()) << to_string(follower.error());
    follower_ = std::move(*follower);
  }

  // Two looks: what the first finds is read at the second.
  control::v1::CallBatch batch() {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(followed_->look().ok());
      while (follower_->read(std::chrono::steady_clock::now() + std::chrono::seconds(5))) {
      }
    }
    names_->finish(followed_->manifest(), followed_->said());
    return follower_->take_batch();
  }

  static std::vector<std::string> words(const control::v1::CallBatch& batch) {
    std::vector<std::string> all;
    for (const control::v1::LiveCall& call : batch.calls()) {
      all.push_back(call.function() + " " + std::to_string(call.duration_ns()) +
                    (call.caller().empty() ? "" : " by " + call.caller()) +
                    (call.unwound() ? " unwound" : ""));
    }
    return all;
  }
  static std::map<std::string, uint64_t> self_times(const control::v1::CallBatch& batch) {
    std::map<std::string, uint64_t> times;
    for (const auto& function : batch.functions()) times[function.function()] = function.self_ns();
    return times;
  }

  bool has_switches_ = false;
  std::map<uint32_t, std::vector<Step>> written_;
  std::unique_ptr<FollowedSession> followed_;
  std::unique_ptr<LiveNames> names_;
  std::unique_ptr<CallFollower> follower_;
};

TEST_F(CallFollowerTest, CallsThatBeganAreGivenWhenTheyEnd) {
  append(0, {{5, kCall, kMain}});
  follow();
  append(0, {{10, kCall, kParse}, {12, kCall, kSlow}, {20, kException, kSlow}});
  EXPECT_THAT(words(batch()), ElementsAre("slow 8 by parse unwound"));
  append(0, {{30, kReturn, kParse}, {40, kReturn, kMain}});
  const auto last = batch();
  EXPECT_THAT(words(last), ElementsAre("parse 20"));  // main was open when it began
  EXPECT_EQ(last.events(), 2u);
  EXPECT_EQ(last.first_ns(), 5u);
  EXPECT_EQ(last.time_ns(), 40u);
  EXPECT_THAT(words(batch()), IsEmpty());
}

// What a thread was off the processor for is known a look later than its calls, or never.
TEST_F(CallFollowerTest, TimesOnAProcessorOfCalls) {
  fs::remove(session_ / "manifest.json");
  has_switches_ = true;
  write_manifest("recording", "");
  append_switches({{10, 11}});
  follow();
  append(0,
         {{100, kCall, kMain}, {110, kCall, kParse}, {150, kCall, kSlow}, {450, kReturn, kSlow}});
  append_switches({{105, 107}, {200, 300}});
  const auto first = batch();
  EXPECT_TRUE(first.has_switches());
  ASSERT_EQ(first.calls_size(), 1);
  EXPECT_EQ(first.calls(0).duration_ns(), 300u);
  EXPECT_EQ(first.calls(0).cpu_ns(), 200u);
  append(0, {{460, kReturn, kParse}, {500, kReturn, kMain}});
  append_switches({{440, 441}, {470, 480}});  // the first comes too late
  const auto second = batch();
  ASSERT_EQ(second.calls_size(), 2);
  EXPECT_EQ(second.calls(0).cpu_ns(), 250u);  // parse, 110 to 460
  EXPECT_EQ(second.calls(1).cpu_ns(), 288u);  // main, 100 to 500
  std::map<std::string, uint64_t> cpu;
  for (const auto& batch : {first, second}) {
    for (const auto& one : batch.functions()) cpu[one.function()] += one.cpu_self_ns();
  }
  EXPECT_EQ(cpu, (std::map<std::string, uint64_t>{{"main", 38}, {"parse", 50}, {"slow", 200}}));
  EXPECT_EQ(second.functions(0).function(), "main");  // by what was on a processor
}

// A thread that has no event for long: what it waited is known as a sum.
TEST_F(CallFollowerTest, ManyWaitsBetweenTwoEventsAreJoined) {
  has_switches_ = true;
  write_manifest("recording", "");
  follow();
  append(0, {{100, kCall, kSlow}});
  (void)batch();
  std::vector<std::pair<uint64_t, uint64_t>> many;
  for (uint64_t i = 0; i < 2 * kMaxWaitsOfThread; ++i)
    many.emplace_back(200 + 10 * i, 204 + 10 * i);
  append_switches(many);
  EXPECT_TRUE(followed_->look().ok());
  EXPECT_EQ(followed_->threads().at(0).waits.size(), kMaxWaitsOfThread);
  append(0, {{100'000, kReturn, kSlow}});
  EXPECT_EQ(batch().calls(0).cpu_ns(), 99'900 - 4 * many.size());
}

TEST_F(CallFollowerTest, UnknownTimesOnAProcessorAreLeftOut) {
  follow();
  append(0, {{10, kCall, kParse}, {20, kReturn, kParse}});
  const auto one = batch();
  EXPECT_FALSE(one.has_switches());
  EXPECT_FALSE(one.calls(0).has_cpu_ns());
  EXPECT_FALSE(one.functions(0).has_cpu_self_ns());
}

TEST_F(CallFollowerTest, ReadsEventsAfterALook) {
  follow();
  append(0, {{10, kCall, kParse}, {20, kReturn, kParse}});
  ASSERT_TRUE(followed_->look().ok());
  follower_->read(std::chrono::steady_clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(follower_->take_batch().events(), 0u);
  EXPECT_THAT(words(batch()), ElementsAre("parse 10"));
}

TEST_F(CallFollowerTest, SelfTimeIsTheInnermostCallsInTheMessage) {
  follow();
  append(0, {{100, kCall, kMain}, {110, kCall, kParse}, {150, kCall, kSlow}});
  EXPECT_THAT(self_times(batch()), (std::map<std::string, uint64_t>{{"main", 10}, {"parse", 40}}));
  append(0, {{450, kReturn, kSlow}, {460, kReturn, kParse}, {461, kReturn, kMain}});
  const auto second = batch();
  EXPECT_EQ(self_times(second),
            (std::map<std::string, uint64_t>{{"slow", 300}, {"parse", 10}, {"main", 1}}));
  EXPECT_EQ(second.functions(0).function(), "slow");  // the busiest first
  EXPECT_EQ(second.functions(0).total_ns(), 300u);
  EXPECT_EQ(second.functions(0).calls(), 1u);
}

TEST_F(CallFollowerTest, LossEndsCallsAndIsCounted) {
  follow();
  append(0, {{10, kCall, kMain}, {20, kCall, kParse}});
  EXPECT_THAT(words(batch()), IsEmpty());
  // parse returned and was called again in it: the pair across would be a long call.
  write_manifest("recording",
                 R"({"thread": 0, "lane": "index", "before_seq": 2, "lost": 5, "first_ns": 21,
                     "last_ns": 900})",
                 5);
  append(0, {{1000, kCall, kSlow}, {1001, kReturn, kSlow}, {1010, kReturn, kMain}});
  const auto after = batch();
  EXPECT_EQ(after.lost_events(), 5u);
  EXPECT_THAT(words(after), ElementsAre("slow 1 by main", "main 1000"));
  EXPECT_EQ(batch().lost_events(), 0u);
}

TEST_F(CallFollowerTest, ThreadsFunctionsAndDurationsAreChosen) {
  FollowOptions options = of_calls(100);
  options.functions = {"par*"};
  options.threads = {*storage::ThreadPattern::parse("name=work*")};
  options.least_ns = 10;
  follow(options);
  append(0, {{10, kCall, kParse}, {50, kReturn, kParse}});
  append(1, {{10, kCall, kParse}, {15, kCall, kSlow}, {45, kReturn, kSlow}, {50, kReturn, kParse}});
  append(1, {{60, kCall, kParse}, {69, kReturn, kParse}});
  const auto chosen = batch();
  EXPECT_THAT(words(chosen), ElementsAre("parse 40"));
  EXPECT_EQ(chosen.calls(0).thread_name(), "worker");
  EXPECT_EQ(chosen.calls(0).thread_id(), 71u);
  EXPECT_EQ(chosen.events(), 6u);
  EXPECT_EQ(chosen.skipped_calls(), 0u);
  ASSERT_EQ(chosen.functions_size(), 1);
  EXPECT_EQ(chosen.functions(0).calls(), 2u);
}

TEST_F(CallFollowerTest, ReportsTheLongestCallsAndCountsTheOthers) {
  follow(of_calls(2));
  std::vector<Step> steps;
  for (uint64_t i = 1; i <= 5; ++i) {
    steps.push_back({100 * i, kCall, kParse});
    steps.push_back({100 * i + i, kReturn, kParse});
  }
  append(0, steps);
  const auto longest = batch();
  EXPECT_THAT(words(longest), ElementsAre("parse 4", "parse 5"));
  EXPECT_EQ(longest.skipped_calls(), 3u);
}

TEST_F(CallFollowerTest, SealedSessionIsReadToItsEnd) {
  follow();
  append(0, {{10, kCall, kParse}, {20, kReturn, kParse}});
  const std::vector<uint8_t> whole = ctl::testing::index_of(written_[0], 70);
  write_text(session_ / "thread_0" / "index.atf", std::string(whole.begin(), whole.end()));
  write_manifest("complete", "");
  ASSERT_TRUE(followed_->look().ok());
  EXPECT_TRUE(followed_->is_sealed());
  EXPECT_FALSE(follower_->read(std::chrono::steady_clock::now() + std::chrono::seconds(5)));
  EXPECT_THAT(words(follower_->take_batch()), ElementsAre("parse 10"));
}

TEST_F(CallFollowerTest, DamagedFilesAreNothingToRead) {
  follow();
  write_text(session_ / "manifest.json", "{");
  fs::create_directories(session_ / "thread_7");
  write_text(session_ / "thread_7" / "index.atf", std::string(1000, '\xff'));
  append(0, {{10, kCall, kParse}, {20, kReturn, kParse}});
  EXPECT_THAT(words(batch()), ElementsAre("parse 10"));
  fs::remove_all(session_);
  EXPECT_EQ(followed_->look().code(), Code::kNotFound);
}

}  // namespace
}  // namespace collect::ctl::follow
