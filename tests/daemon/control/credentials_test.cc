// What the check of each call's token says, call by call.
#include "daemon/control/credentials.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

using Metadata = TokenCheck::InputMetadata;

struct Checked {
  grpc::Status status;
  TokenCheck::OutputMetadata consumed;
};

Checked checked(TokenCheck& check, const Metadata& metadata) {
  Checked outcome;
  TokenCheck::OutputMetadata response;
  outcome.status = check.Process(metadata, nullptr, &outcome.consumed, &response);
  EXPECT_TRUE(response.empty());
  return outcome;
}

TEST(TokenCheck, TakesTheTokenOutOfWhatHandlersSee) {
  TokenCheck check("secret", [] { return std::string("another user"); });
  const Checked right = checked(check, {{"authorization", "Bearer secret"}, {"other", "x"}});
  EXPECT_TRUE(right.status.ok());
  EXPECT_EQ(right.consumed.size(), 1u);
  EXPECT_EQ(right.consumed.count("authorization"), 1u);
  const Checked wrong = checked(check, {{"authorization", "Bearer secreT"}});
  EXPECT_EQ(wrong.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(wrong.status.error_message(), "the token is wrong");
  EXPECT_EQ(wrong.consumed.count("authorization"), 1u);
}

TEST(TokenCheck, TakesTheWholeTokenAndNothingElse) {
  TokenCheck check("secret", [] { return std::string(); });
  for (const char* shown : {"Bearer ", "Bearer secre", "Bearer secrets", "Bearer  secret"}) {
    EXPECT_FALSE(checked(check, {{"authorization", shown}}).status.ok()) << shown;
  }
  // Without the scheme there is no token at all.
  for (const char* shown : {"", "secret", "bearer secret", "Basic secret"}) {
    const auto status = checked(check, {{"authorization", shown}}).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << shown;
    EXPECT_NE(status.error_message().find("asks for a token"), std::string::npos) << shown;
  }
  EXPECT_EQ(checked(check, {}).status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  check.set_token("other");
  EXPECT_FALSE(checked(check, {{"authorization", "Bearer secret"}}).status.ok());
  EXPECT_TRUE(checked(check, {{"authorization", "Bearer other"}}).status.ok());
  check.set_token("");
  EXPECT_TRUE(checked(check, {}).status.ok()) << "none is asked for";
}

TEST(TokenCheck, RefusesWebPagesWithAnyToken) {
  TokenCheck check("secret", [] { return std::string(); });
  for (const char* key : {"origin", "sec-fetch-site", "sec-fetch-mode"}) {
    const auto status = checked(check, {{"authorization", "Bearer secret"}, {key, "x"}}).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << key;
  }
}

// It waits for nothing, so gRPC may ask on the thread that has the call.
TEST(TokenCheck, NeedsNoThreadOfItsOwn) {
  EXPECT_FALSE(TokenCheck("secret", [] { return std::string(); }).IsBlocking());
}

}  // namespace
}  // namespace collect::control
