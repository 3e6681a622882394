// What is asked of connections, where others than this machine can connect; refusals; and a seal
// that comes late.
#include <gmock/gmock.h>

#include "daemon/ingest/session/core.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/certificates.h"

namespace collect::ingest {
namespace {

using testing::HasSubstr;

class AccessTest : public IngestTest {
 protected:
  std::shared_ptr<const TlsContext> tls(bool checks) {
    auto loaded = TlsContext::load(
        {server_.certificate, server_.key, checks ? authority_.certificate() : std::string()});
    EXPECT_TRUE(loaded.ok()) << to_string(loaded.error());
    return loaded.ok() ? std::move(loaded).value() : nullptr;
  }
  // What is missing with these; empty: nothing.
  std::string missing(const std::string& token, std::shared_ptr<const TlsContext> tls) {
    options_.token = token;
    options_.tls = std::move(tls);
    IngestCore core(options_, posix_, reported_);
    const Status guarded = core.guard("0.0.0.0:7710");
    if (guarded.ok()) return "";
    EXPECT_EQ(guarded.code(), Code::kInvalidArgument);
    EXPECT_TRUE(core.set_access("", nullptr).ok()) << "it is not reached by others after all";
    const std::string before =
        "ingest address 0.0.0.0:7710: other machines can reach it, so it needs ";
    const std::string behind = "; 127.0.0.1, [::1] and unix:/path need nothing";
    const std::string text = guarded.error().message;
    EXPECT_TRUE(text.starts_with(before) && text.ends_with(behind)) << text;
    return text.substr(before.size(), text.size() - before.size() - behind.size());
  }

  fakes::Authority authority_{root_, "ca"};
  fakes::CertifiedKey server_ = authority_.issue("server");
};

TEST_F(AccessTest, OtherMachinesNeedTlsAndACheck) {
  const std::string files = "tls_certificate and tls_key";
  const std::string check = "token_file or tls_client_ca";
  EXPECT_EQ(missing("", nullptr), files + ", and " + check);
  EXPECT_EQ(missing("secret", nullptr), files);
  EXPECT_EQ(missing("", tls(false)), check);
  EXPECT_EQ(missing("secret", tls(false)), "");
  EXPECT_EQ(missing("", tls(true)), "");
  EXPECT_EQ(missing("secret", tls(true)), "");
}

TEST_F(AccessTest, RefusesAccessTooWeakForAGuardedAddress) {
  options_.token = "secret";
  options_.tls = tls(false);
  IngestCore core(options_, posix_, reported_);
  EXPECT_EQ(core.token(), "secret");
  EXPECT_EQ(core.tls(), options_.tls);
  const auto checked = tls(true);
  ASSERT_TRUE(core.set_access("", nullptr).ok()) << "only this machine connects";
  EXPECT_EQ(core.token(), "");
  EXPECT_EQ(core.tls(), nullptr);
  ASSERT_TRUE(core.set_access("other", checked).ok());
  ASSERT_TRUE(core.guard("10.0.0.1:1").ok());
  const Status refused = core.set_access("new", nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("ingest address 10.0.0.1:1: "));
  EXPECT_EQ(core.token(), "other") << "nothing changes";
  EXPECT_EQ(core.tls(), checked);
  EXPECT_TRUE(core.set_access("", checked).ok());
  EXPECT_EQ(core.token(), "");
}

TEST_F(AccessTest, RefusalsAreCountedAndLogged) {
  capture_log();
  IngestCore core(options_, posix_, reported_);
  core.refused("10.0.0.1:5", "for a test");
  EXPECT_EQ(core.counters.connections_refused, 1u);
  EXPECT_THAT(log_->text(), HasSubstr("refused 10.0.0.1:5: for a test"));
  for (uint32_t at = 0; at < kRefusalLinesPerPeriod; ++at) core.refused("10.0.0.2:6", "again");
  const std::string before = log_->text();
  core.refused("10.0.0.2:6", "again");
  EXPECT_EQ(log_->text(), before) << "not even an empty line";
  EXPECT_EQ(core.counters.connections_refused, kRefusalLinesPerPeriod + 2);
}

// It was shown as held up; from then on it is no one's.
TEST_F(AccessTest, SealThatComesLateIsShown) {
  IngestCore core(options_, posix_, reported_);
  SessionSnapshot before;
  before.name = "session_20260101_000000/pid_1";
  before.directory = root_ + "/" + before.name;
  before.state = SessionState::kFailed;
  before.status = "the disk is full";
  before.agent = 7;
  before.process_name = "app";
  before.totals.events = 1;
  const SessionQueue::OnReport on_report = core.late_seal(before);
  on_report({});
  EXPECT_EQ(reported_.session_count(), 0u) << "that was no seal";
  SessionReport report;
  report.sealed = SessionReport::Sealed{};
  report.sealed->state = storage::SessionState::kRecovered;
  report.sealed->reason = "cut";
  report.sealed->symbols = storage::SymbolsState::kPending;
  report.sealed->health.state = storage::SessionState::kRecovered;
  report.totals.events = 5;
  const auto now = std::chrono::system_clock::now();
  on_report(report);
  const auto shown = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->name, before.name);
  EXPECT_EQ(shown->agent, 7u);
  EXPECT_EQ(shown->process_name, "app");
  EXPECT_EQ(shown->status, "cut");
  EXPECT_EQ(shown->symbols, storage::SymbolsState::kPending);
  EXPECT_EQ(shown->health.state, storage::SessionState::kRecovered);
  EXPECT_EQ(shown->totals.events, 5u);
  EXPECT_GE(shown->end_time, now);
}

}  // namespace
}  // namespace collect::ingest
