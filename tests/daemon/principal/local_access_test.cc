#include "daemon/principal/local_access.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/other_user.h"

namespace collect::principal {
namespace {

using fakes::kOtherUid;
using testing::HasSubstr;

Peer user(uid_t uid) {
  return local_peer(uid, true);
}

Peer unknown() {
  Peer peer;
  peer.is_local = true;
  peer.unknown = "it closed";
  return peer;
}

TEST(LocalAccessTest, UserIsTheOwnUserAndRoot) {
  const auto access = LocalAccess::parse("user");
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->refusal(user(::geteuid())), "");
  EXPECT_EQ(access->refusal(user(0)), "");
  EXPECT_THAT(access->refusal(user(kOtherUid)), HasSubstr("user 65534 may not connect"));
  EXPECT_THAT(access->refusal(user(kOtherUid)), HasSubstr("--local-access group:NAME"));
}

TEST(LocalAccessTest, UnknownUsersGetInOnlyWhereAnyoneDoes) {
  EXPECT_THAT(LocalAccess().refusal(unknown()), HasSubstr("it closed"));
  EXPECT_THAT(LocalAccess::parse("group:root")->refusal(unknown()), HasSubstr("use a Unix socket"));
  EXPECT_EQ(LocalAccess::parse("any")->refusal(unknown()), "");
  EXPECT_EQ(LocalAccess::parse("any")->refusal(user(kOtherUid)), "");
}

// nobody's primary group, whatever it is called here.
TEST(LocalAccessTest, MembersOfTheGroupGetIn) {
  const passwd* nobody = ::getpwuid(kOtherUid);
  if (nobody == nullptr) GTEST_SKIP() << "there is no user 65534 here";
  const gid_t primary = nobody->pw_gid;
  const group* named = ::getgrgid(primary);
  ASSERT_NE(named, nullptr);
  const auto access = LocalAccess::parse(std::string("group:") + named->gr_name);
  ASSERT_TRUE(access.ok()) << to_string(access.error());
  EXPECT_EQ(access->refusal(user(kOtherUid)), "");
  EXPECT_EQ(access->refusal(user(0)), "");
  EXPECT_THAT(access->refusal(user(4'000'000)), HasSubstr("become a member"));
  EXPECT_NE(LocalAccess::parse("group:root")->refusal(user(kOtherUid)), "");
}

TEST(LocalAccessTest, NamesWhatIsWrong) {
  for (const char* text : {"", "users", "group:", "group", "none"}) {
    EXPECT_EQ(LocalAccess::parse(text).code(), Code::kInvalidArgument) << text;
  }
  const auto missing = LocalAccess::parse("group:no_such_group_here");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("no_such_group_here"));
}

TEST(LocalAccessTest, TheSocketFileFollowsTheRule) {
  std::string path = "/tmp/collect_local_access_XXXXXX";
  const int file = ::mkstemp(path.data());
  ASSERT_GE(file, 0);
  ::close(file);
  const auto mode_after = [&path](const char* rule) {
    EXPECT_TRUE(LocalAccess::parse(rule)->open_socket_file(path).ok());
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode_after("user"), 0600u);
  EXPECT_EQ(mode_after("any"), 0666u);
  if (::geteuid() == 0) {
    EXPECT_EQ(mode_after("group:root"), 0660u);
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace collect::principal
