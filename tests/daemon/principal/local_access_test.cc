#include "daemon/principal/local_access.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/fakes/machine/other_user.h"

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

// The primary group of uid 65534, under any name.
TEST(LocalAccessTest, MembersOfTheGroupGetIn) {
  const passwd* other = ::getpwuid(kOtherUid);
  if (other == nullptr) GTEST_SKIP() << "there is no user 65534 here";
  const gid_t primary = other->pw_gid;
  const group* named = ::getgrgid(primary);
  ASSERT_NE(named, nullptr);
  const auto access = LocalAccess::parse(std::string("group:") + named->gr_name);
  ASSERT_TRUE(access.ok()) << to_string(access.error());
  EXPECT_EQ(access->refusal(user(kOtherUid)), "");
  EXPECT_EQ(access->refusal(user(0)), "");
  EXPECT_THAT(access->refusal(user(4'000'000)), HasSubstr("become a member"));
  EXPECT_THAT(LocalAccess::parse("group:root")->refusal(user(kOtherUid)),
              HasSubstr("local_access is \"group:root\""));
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

TEST(LocalAccessTest, SocketFileFollowsTheRule) {
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
  const passwd* other = ::getpwuid(kOtherUid);
  const group* named = other == nullptr ? nullptr : ::getgrgid(other->pw_gid);
  if (::geteuid() == 0 && named != nullptr) {
    EXPECT_EQ(mode_after("group:root"), 0660u);
    EXPECT_EQ(mode_after((std::string("group:") + named->gr_name).c_str()), 0660u);
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, other->pw_gid);
    EXPECT_EQ(mode_after("user"), 0600u);
    EXPECT_EQ(mode_after("any"), 0666u);
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, other->pw_gid) << "only a rule of a group changes it";
  }
  ::unlink(path.c_str());
  const Status missing = LocalAccess().open_socket_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr(path));
}

// A daemon that is not root lets in its own user and root, and no one else.
TEST(LocalAccessTest, AnotherUsersDaemonServesThatUserAndRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string answer = fakes::as_other_user([] {
    const LocalAccess access;
    std::string let_in;
    for (const uid_t uid : {uid_t{0}, uid_t{1000}, kOtherUid}) {
      if (access.refusal(user(uid)).empty()) let_in += std::to_string(uid) + " ";
    }
    return let_in;
  });
  EXPECT_EQ(answer, "0 65534 ");
}

// As this program sees it: /etc/group with this text, in a mount namespace of the child's own.
// kNoNamespace: there is none to be had.
constexpr int kNoNamespace = 77;
int with_groups(const std::string& text, const std::function<int()>& work) {
  std::string path = "/tmp/collect_groups_XXXXXX";
  const int file = ::mkstemp(path.data());
  EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(file);
  fakes::OtherUser child(
      [&] {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount(path.c_str(), "/etc/group", nullptr, MS_BIND, nullptr) != 0) {
          return kNoNamespace;
        }
        return work();
      },
      ::getuid());
  const int outcome = child.wait();
  ::unlink(path.c_str());
  return outcome;
}

TEST(LocalAccessTest, GroupsMayHaveThousandsOfMembers) {
  std::string members = "member_0";
  for (int i = 1; i < 5'000; ++i) members += ",member_" + std::to_string(i);
  const int outcome = with_groups("large:x:4711:" + members + "\n",
                                  [] { return LocalAccess::parse("group:large").ok() ? 0 : 1; });
  if (outcome == kNoNamespace) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(outcome, 0);
}

// An administrator who has set up such a group must not read that there is none.
TEST(LocalAccessTest, GroupThatIsTooLargeIsNotCalledMissing) {
  const std::string members(3u << 20, 'm');
  const int outcome = with_groups("huge:x:4711:" + members + "\n", [] {
    const auto access = LocalAccess::parse("group:huge");
    return !access.ok() && access.code() != Code::kNotFound &&
                   access.error().message.find(std::strerror(ERANGE)) != std::string::npos
               ? 0
               : 1;
  });
  if (outcome == kNoNamespace) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(outcome, 0);
}

TEST(LocalAccessTest, AdmitsMembersByEachOfManyGroups) {
  const passwd* other = ::getpwuid(kOtherUid);
  if (other == nullptr) GTEST_SKIP() << "there is no user 65534 here";
  std::string groups;
  for (int i = 0; i < 200; ++i) {
    groups +=
        "g" + std::to_string(i) + ":x:" + std::to_string(5'000 + i) + ":" + other->pw_name + "\n";
  }
  const int outcome = with_groups(groups + "alien:x:4711:\n", [] {
    const auto let_in = [](const std::string& rule) {
      const auto access = LocalAccess::parse(rule);
      return access.ok() && access->refusal(user(kOtherUid)).empty();
    };
    return let_in("group:g0") && let_in("group:g199") && !let_in("group:alien") ? 0 : 1;
  });
  if (outcome == kNoNamespace) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(outcome, 0);
}

// NGROUPS_MAX of Linux, with the user's own group: more than that no one has.
TEST(LocalAccessTest, RefusesMembersOfMoreGroupsThanTheLimit) {
  const passwd* other = ::getpwuid(kOtherUid);
  if (other == nullptr) GTEST_SKIP() << "there is no user 65534 here";
  const auto lets_in = [other](int count) {
    std::string groups;
    for (int i = 1; i < count; ++i) {
      groups += "g" + std::to_string(i) + ":x:" + std::to_string(100'000 + i) + ":" +
                other->pw_name + "\n";
    }
    return with_groups(groups, [] {
      const auto access = LocalAccess::parse("group:g1");
      return access.ok() && access->refusal(user(kOtherUid)).empty() ? 1 : 0;
    });
  };
  if (lets_in(2) == kNoNamespace) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(lets_in(65'536), 1);
  EXPECT_EQ(lets_in(65'537), 0);
}

// A file of another user is not made connectable, and that is said.
TEST(LocalAccessTest, FileThatIsNotOursIsNotOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::string path = "/tmp/collect_local_access_XXXXXX";
  const int file = ::mkstemp(path.data());
  ASSERT_GE(file, 0);
  ::close(file);
  const std::string answer = fakes::as_other_user([&path] {
    std::string said;
    for (const char* rule : {"user", "any", "group:root"}) {
      const auto access = LocalAccess::parse(rule);
      if (access.ok() && access->open_socket_file(path).code() == Code::kPermission) said += "no ";
    }
    return said;
  });
  EXPECT_EQ(answer, "no no no ");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace collect::principal
