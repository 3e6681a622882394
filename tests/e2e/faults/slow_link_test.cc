// A cable that is slower than the program: pages are encoded for the way, and what arrives is what
// the program did. The proxy limits the bytes; counters, not times, say what was encoded.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr uint64_t kUsb2 = 35'000'000;  // bytes a second
constexpr seconds kJobLimit{240};
constexpr size_t kThreads = 4;

// 0 where there is no answer.
uint64_t number(const json& message, const char* field) {
  const auto found = message.find(field);
  return found == message.end() ? 0 : found->get<uint64_t>();
}

class SlowLink : public testing::TestWithParam<const char*> {
 protected:
  void start(const Arguments& more) {
    Arguments flags{"--rtc", "false", "--heartbeat-ms", "200", "--resume-ms", "120000"};
    flags.insert(flags.end(), more.begin(), more.end());
    collector_ = std::make_unique<CollectorProcess>(scratch_, flags);
    proxy_ = std::make_unique<fakes::ChaosProxy>(collector_->ingest_port());
    proxy_->limit_rate(kUsb2);
  }

  Environment tracing(int atf_version = 2) const {
    Environment environment = collector_->tracing("wait", atf_version);
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_->port());
    environment["COLLECT_DRAIN"] = GetParam();
    environment["COLLECT_EXIT_FLUSH_MS"] = "120000";
    environment["COUNT_FILE"] = scratch_ / "count";
    return environment;
  }

  uint64_t pages_decoded() const {
    const Ending stats = collector_->ctl({"--json", "collectors"});
    return stats.exited_with(0) ? number(json::parse(stats.output), "pages_decoded") : 0;
  }

  // What the one agent last said of its link.
  json agent() const {
    const Ending listed = collector_->ctl({"--json", "agents"});
    if (!listed.exited_with(0)) return {};
    const json agents = json::parse(listed.output).value("agents", json::array());
    return agents.empty() ? json() : agents[0];
  }

  void expect_verified(const std::string& directory) const {
    const Ending verified = collector_->ctl({"verify", directory}, kJobLimit);
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  Scratch scratch_;
  std::unique_ptr<CollectorProcess> collector_;
  std::unique_ptr<fakes::ChaosProxy> proxy_;
};

TEST_P(SlowLink, PagesAreEncodedAndEveryEventArrives) {
  if (!std::filesystem::is_directory("/usr/share/iso-codes/json")) {
    GTEST_SKIP() << "iso-codes is not installed";
  }
  for (const int version : {1, 2}) {
    start({});
    ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2"},
                     tracing(version));
    EXPECT_TRUE(eventually(kJobLimit, [&] {
      const json seen = agent();
      return number(seen, "link_sent_bytes") < number(seen, "link_raw_bytes") || !job.running();
    }));
    EXPECT_TRUE(job.running()) << "the agent said so before its program ended";
    ASSERT_TRUE(job.wait(kJobLimit).exited_with(0));
    const std::vector<RecordedSession> sessions =
        sealed_sessions(collector_->root(), job.pid(), kJobLimit);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
    expect_verified(sessions[0].directory());
    EXPECT_GT(pages_decoded(), 100u);
    EXPECT_LT(proxy_->carried_bytes(), sessions[0].totals().events * 32 / 3);
    collector_.reset();
    std::filesystem::remove_all(scratch_ / "root");
  }
}

// The same program twice over the same link, a quarter as fast, so that it is the slower one on a
// busy machine too: for a collector that wants it, pages are soon encoded; for the other, none of
// four times as many bytes is.
TEST_P(SlowLink, EncodesPagesOnlyWhenTheCollectorWantsIt) {
  const std::string progress = scratch_ / "progress";
  uint64_t bytes_until_encoded = 0;
  for (const bool wanted : {true, false}) {
    start(wanted ? Arguments{} : Arguments{"--page-codecs", "off"});
    proxy_->limit_rate(kUsb2 / 4);
    ChildProcess job(scratch_.path(), {traced_program("chaos"), progress, std::to_string(kThreads)},
                     tracing());
    if (wanted) {
      ASSERT_TRUE(eventually(seconds(60), [&] { return pages_decoded() > 0; }));
      bytes_until_encoded = proxy_->carried_bytes();
    } else {
      ASSERT_TRUE(
          eventually(kJobLimit, [&] { return proxy_->carried_bytes() > 4 * bytes_until_encoded; }));
    }
    job.send_signal(SIGTERM);
    ASSERT_TRUE(job.wait(kJobLimit).exited_with(0)) << job.errors();
    const ChaosTally tally = check_chaos_process(
        collector_->root(), job.pid(), read_progress(progress, kThreads), ChaosEnd::kOrderly, true);
    EXPECT_EQ(tally.sessions, 1u);
    EXPECT_EQ(tally.lost, 0u);
    if (!wanted) {
      EXPECT_EQ(pages_decoded(), 0u);
      const std::vector<std::string> directories =
          session_directories(collector_->root(), job.pid());
      ASSERT_EQ(directories.size(), 1u);
      EXPECT_GT(proxy_->carried_bytes(), RecordedSession(directories[0]).totals().events * 32);
    }
    collector_.reset();
  }
}

// The link is slower than one page takes to be seen whole, so that it breaks within encoded ones.
TEST_P(SlowLink, ContinuesAfterACutWithinEncodedPages) {
  start({});
  const std::string progress = scratch_ / "progress";
  Environment environment = tracing();
  environment["COLLECT_DETAIL"] = "on";  // pages of the other lane, too
  ChildProcess job(scratch_.path(), {traced_program("chaos"), progress, std::to_string(kThreads)},
                   environment);
  for (int cut = 0; cut < 8; ++cut) {
    // What came before the last cut is still being decoded: it says nothing about the new link.
    ASSERT_TRUE(eventually(
        seconds(60), [&] { return number(agent(), "reconnects") >= static_cast<uint64_t>(cut); }))
        << "after " << cut << " cuts";
    const uint64_t before = pages_decoded();
    ASSERT_TRUE(eventually(seconds(60), [&] { return pages_decoded() > before + 20; }))
        << "after " << cut << " cuts";
    proxy_->cut_all(cut % 2 == 0);
    ASSERT_TRUE(job.running());
  }
  job.send_signal(SIGTERM);
  ASSERT_TRUE(job.wait(kJobLimit).exited_with(0)) << job.errors();
  const ChaosTally tally = check_chaos_process(
      collector_->root(), job.pid(), read_progress(progress, kThreads), ChaosEnd::kOrderly, true);
  EXPECT_EQ(tally.sessions, 1u);
  EXPECT_EQ(tally.lost, 0u);
  EXPECT_GE(number(agent(), "reconnects"), 7u);
  const std::vector<std::string> directories = session_directories(collector_->root());
  ASSERT_EQ(directories.size(), 1u);
  expect_verified(directories[0]);
}

INSTANTIATE_TEST_SUITE_P(Drain, SlowLink, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
