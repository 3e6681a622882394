// Who gets in: a real daemon with certificates of deploy/make-certificates.sh, and clients with the
// right ones, wrong ones and none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "correct-horse-battery";
constexpr const char* kControlToken = "staple-control-plane";

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    make_certificates("ca", {"server", "localhost", "127.0.0.1"});
    make_certificates("ca", {"client", "alice"});
    make_certificates("foreign", {"client", "mallory"});
    write_text_file(token_file_, std::string(kToken) + "\n");
    write_text_file(control_token_file_, std::string(kControlToken) + "\n");
    ::chmod(token_file_.c_str(), 0600);
    ::chmod(control_token_file_.c_str(), 0600);
  }

  void make_certificates(const std::string& directory, const Arguments& what) {
    Arguments command = {deploy_script("make-certificates.sh"), scratch_ / directory};
    command.insert(command.end(), what.begin(), what.end());
    const Ending ending = run(scratch_.path(), command);
    ASSERT_TRUE(ending.exited_with(0)) << ending.errors;
  }
  std::string file(const std::string& name) const { return scratch_ / ("ca/" + name); }
  Arguments tls() const {
    return {"--tls-certificate", file("server.pem"), "--tls-key", file("server.key")};
  }
  Arguments tls_and_tokens() const {
    Arguments flags = tls();
    flags.insert(flags.end(),
                 {"--token-file", token_file_, "--control-token-file", control_token_file_});
    return flags;
  }
  // The daemon's one line when it does not start.
  std::string refusal(const std::string& ingest, const std::string& control, Arguments more) {
    Arguments command = {program("collectord"), "--root", scratch_ / "unused", "--ingest", ingest,
                         "--control",           control};
    command.insert(command.end(), more.begin(), more.end());
    const Ending ending = run(scratch_.path(), command);
    EXPECT_TRUE(ending.exited_with(2)) << ending.describe() << ending.errors;
    EXPECT_EQ(std::count(ending.errors.begin(), ending.errors.end(), '\n'), 1) << ending.errors;
    return ending.errors;
  }
  // collectctl collectors with these options, and without them in the environment.
  Ending stats(const CollectorProcess& collector, Arguments options) {
    options.push_back("collectors");
    return collector.ctl(options);
  }

  Scratch scratch_;
  const std::string token_file_ = scratch_ / "token";
  const std::string control_token_file_ = scratch_ / "control_token";
};

TEST_F(AccessTest, ReachableAddressesNeedTlsAndACheck) {
  const std::string here = "127.0.0.1:" + std::to_string(free_port());
  for (const std::string& all :
       {"0.0.0.0:" + std::to_string(free_port()), "[::]:" + std::to_string(free_port())}) {
    EXPECT_THAT(refusal(all, here, {}), HasSubstr("ingest address " + all +
                                                  ": other machines can reach it, so it needs "
                                                  "tls_certificate and tls_key, and token_file"));
    EXPECT_THAT(refusal(here, all, {}), HasSubstr("control address " + all +
                                                  ": other machines can reach it, so it needs "
                                                  "tls_certificate and tls_key, and "
                                                  "control_token_file or tls_client_ca"));
    EXPECT_THAT(refusal(all, here, tls()), HasSubstr("needs token_file or tls_client_ca"));
    EXPECT_THAT(refusal(here, all, tls()), HasSubstr("needs control_token_file or tls_client_ca"));
    EXPECT_THAT(refusal(all, here, {"--token-file", token_file_}),
                HasSubstr("needs tls_certificate and tls_key;"));
  }
}

TEST_F(AccessTest, SettingsThatDoNotFitTogetherAreNamed) {
  const std::string here = "127.0.0.1:" + std::to_string(free_port());
  const auto fault = [&](Arguments more) { return refusal(here, here, std::move(more)); };
  EXPECT_THAT(fault({"--tls-key", file("server.key")}), HasSubstr("tls_key needs tls_certificate"));
  EXPECT_THAT(fault({"--tls-certificate", file("server.pem")}), HasSubstr("needs tls_key"));
  EXPECT_THAT(fault({"--tls-client-ca", file("ca.pem")}), HasSubstr("needs tls_certificate"));
  EXPECT_THAT(fault({"--control-token-file", control_token_file_}), HasSubstr("without TLS"));
  EXPECT_THAT(fault({"--tls-certificate", file("server.pem"), "--tls-key", file("alice.key")}),
              HasSubstr("is not the key of"));
  EXPECT_THAT(fault({"--token-file", scratch_ / "nothing"}), HasSubstr("token_file: "));
}

TEST_F(AccessTest, ControlPlaneAsksForTlsAndToken) {
  ::chmod(token_file_.c_str(), 0644);
  CollectorProcess collector(scratch_, tls_and_tokens());
  const Arguments with_ca = {"--tls-ca", file("ca.pem")};
  const auto with = [](Arguments options, const Arguments& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  const Ending good = stats(collector, with(with_ca, {"--token-file", control_token_file_}));
  EXPECT_TRUE(good.exited_with(0)) << good.errors;
  EXPECT_THAT(good.output, HasSubstr("connections"));

  EXPECT_THAT(stats(collector, {}).errors, HasSubstr("--tls-ca"));
  EXPECT_THAT(stats(collector, with_ca).errors, HasSubstr("--token-file"));
  // The agents' token is not the one of the control plane.
  EXPECT_THAT(stats(collector, with(with_ca, {"--token-file", token_file_})).errors,
              HasSubstr("the token is wrong"));
  EXPECT_THAT(stats(collector, {"--token-file", control_token_file_}).errors,
              HasSubstr("over TLS only"));
  EXPECT_THAT(stats(collector,
                    {"--tls-ca", scratch_ / "foreign/ca.pem", "--token-file", control_token_file_})
                  .errors,
              HasSubstr("is not signed by"));
  EXPECT_THAT(stats(collector, with(with_ca, {"--token-file", control_token_file_, "--tls-name",
                                              "elsewhere.example"}))
                  .errors,
              HasSubstr("--tls-name"));
  EXPECT_THAT(stats(collector, {"--tls-ca", scratch_ / "none.pem"}).errors, HasSubstr("none.pem"));

  const std::string log = collector.process().errors();
  EXPECT_THAT(log, HasSubstr("without the right token"));
  EXPECT_THAT(log, HasSubstr("token_file: " + token_file_ + " can be read by others"));
  for (const char* secret : {kToken, kControlToken, "PRIVATE KEY"}) {
    EXPECT_THAT(log, Not(HasSubstr(secret)));
  }
}

TEST_F(AccessTest, EnvironmentSaysWhatToShow) {
  CollectorProcess collector(scratch_, tls_and_tokens());
  const Ending ending = run(scratch_.path(), {program("collectctl"), "agents"},
                            {{"COLLECT_CONTROL", collector.control()},
                             {"COLLECT_CONTROL_TLS_CA", file("ca.pem")},
                             {"COLLECT_CONTROL_TOKEN_FILE", control_token_file_}});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
}

TEST_F(AccessTest, ControlPlaneAsksForClientCertificates) {
  Arguments flags = tls();
  flags.insert(flags.end(), {"--tls-client-ca", file("ca.pem")});
  CollectorProcess collector(scratch_, flags);
  const Ending good = stats(collector, {"--tls-ca", file("ca.pem"), "--tls-certificate",
                                        file("alice.pem"), "--tls-key", file("alice.key")});
  EXPECT_TRUE(good.exited_with(0)) << good.errors;
  EXPECT_THAT(stats(collector, {"--tls-ca", file("ca.pem")}).errors,
              HasSubstr("--tls-certificate FILE --tls-key FILE"));
  const Ending foreign = stats(
      collector, {"--tls-ca", file("ca.pem"), "--tls-certificate", scratch_ / "foreign/mallory.pem",
                  "--tls-key", scratch_ / "foreign/mallory.key"});
  EXPECT_TRUE(foreign.exited_with(1));
  EXPECT_THAT(foreign.errors, HasSubstr("does not trust the CA that signed"));
}

TEST_F(AccessTest, HangupReadsTokensAgain) {
  CollectorProcess collector(scratch_, tls_and_tokens());
  const Arguments options = {"--tls-ca", file("ca.pem"), "--token-file", scratch_ / "mine"};
  write_text_file(scratch_ / "mine", kControlToken);
  EXPECT_TRUE(stats(collector, options).exited_with(0));
  write_text_file(control_token_file_, "another-token\n");
  collector.process().send_signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(20), [&] { return stats(collector, options).exited_with(1); }));
  write_text_file(scratch_ / "mine", "another-token");
  EXPECT_TRUE(stats(collector, options).exited_with(0));
  // A file that is broken changes nothing, and is named.
  write_text_file(control_token_file_, "");
  collector.process().send_signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return collector.process().errors().find("nothing was changed") != std::string::npos;
  }));
  EXPECT_TRUE(stats(collector, options).exited_with(0));
  EXPECT_THAT(collector.process().errors(), Not(HasSubstr("another-token")));
}

}  // namespace
}  // namespace collect::e2e
