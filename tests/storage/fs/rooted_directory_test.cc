// What is below a directory stays below it: links at every component, other kinds of files,
// second names, and directories that change between two operations. Each with openat2 and without.
#include "storage/fs/rooted_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RootedDirectoryTest : public testing::TestWithParam<Lookup> {
 protected:
  RootedDirectoryTest() {
    fs::create_directories(path("root/session/thread_0"));
    put("root/session/thread_0/index.atf", "index");
    fs::create_directories(path("outside/thread_0"));
    put("outside/thread_0/index.atf", kSecret);
    put("outside/secret", kSecret);
    fs::permissions(path("root"), fs::perms(0755));
  }
  ~RootedDirectoryTest() override {
    EXPECT_EQ(content(path("outside/secret")), kSecret);
    EXPECT_EQ(content(path("outside/thread_0/index.atf")), kSecret);
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void put(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  static std::string content(const std::string& path) {
    const auto bytes = read_file(path);
    return {bytes.begin(), bytes.end()};
  }
  RootedDirectory open() {
    auto root = RootedDirectory::open(path("root"), GetParam());
    EXPECT_OK(root);
    return std::move(*root);
  }
  mode_t mode_of(const std::string& name) const {
    struct stat st{};
    EXPECT_EQ(::lstat(path(name).c_str(), &st), 0) << name;
    return st.st_mode & 07777;
  }
  // Refused for every use, with the name of what was asked for.
  void expect_refused(const std::string& below, const std::string& why) {
    const RootedDirectory root = open();
    for (const FileUse use : {FileUse::kRead, FileUse::kWrite, FileUse::kAppend, FileUse::kLock}) {
      const auto file = root.open_file(below, use);
      ASSERT_FALSE(file.ok()) << below << " use " << int(use);
      EXPECT_EQ(file.code(), Code::kPermission) << to_string(file.error());
      EXPECT_THAT(file.error().message, HasSubstr(path("root/" + below)));
      EXPECT_THAT(file.error().message, HasSubstr(why));
    }
    EXPECT_FALSE(root.open_file(below, FileUse::kCreate).ok());
  }

  static constexpr char kSecret[] = "of someone else";
  TemporaryDirectory directory_;
};

TEST_P(RootedDirectoryTest, OpensRegularFilesBelow) {
  const RootedDirectory root = open();
  const auto file = root.open_file("session/thread_0/index.atf", FileUse::kWrite);
  ASSERT_OK(file);
  EXPECT_EQ(::fcntl(file->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
  const auto missing = root.open_file("session/thread_1/index.atf", FileUse::kRead);
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(root.open_file("session/none", FileUse::kWrite).code(), Code::kNotFound);
  const auto again = root.open_file("session/thread_0/index.atf", FileUse::kCreate);
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
  EXPECT_EQ(*root.list("session/thread_0"), std::vector<std::string>{"index.atf"});
}

TEST_P(RootedDirectoryTest, RootItselfMayBeALink) {
  fs::create_directory_symlink(path("root"), path("link"));
  const auto root = RootedDirectory::open(path("link"), GetParam());
  ASSERT_OK(root);
  EXPECT_OK(root->open_file("session/thread_0/index.atf", FileUse::kRead));
}

TEST_P(RootedDirectoryTest, LinkIsFollowedAtNoComponent) {
  // To the outside, to another place below the same root, and to nothing.
  for (const std::string& target :
       {path("outside/thread_0"), path("root/session/thread_0"), path("outside/none")}) {
    fs::create_directory_symlink(target, path("root/session/thread_1"));
    expect_refused("session/thread_1/index.atf", "link");
    EXPECT_EQ(open().list("session/thread_1").code(), Code::kPermission) << target;
    EXPECT_EQ(open().sync("session/thread_1").code(), Code::kPermission) << target;
    EXPECT_EQ(open().file_system("session/thread_1").code(), Code::kPermission) << target;
    EXPECT_EQ(open().look_at("session/thread_1/index.atf").code(), Code::kPermission) << target;
    fs::remove(path("root/session/thread_1"));
  }
  fs::create_directory_symlink("../outside", path("root/other"));
  expect_refused("other/thread_0/index.atf", "link");
  fs::create_directory_symlink("session", path("root/same"));
  expect_refused("same/thread_0/index.atf", "link");
  for (const std::string& target : {path("outside/secret"), path("outside/none"),
                                    std::string("/proc/self/fd/0"), std::string("index.atf")}) {
    fs::create_symlink(target, path("root/session/thread_0/detail.atf"));
    expect_refused("session/thread_0/detail.atf", "a link");
    fs::remove(path("root/session/thread_0/detail.atf"));
  }
  EXPECT_FALSE(fs::exists(path("outside/none")));
}

TEST_P(RootedDirectoryTest, MagicLinkOfProcIsALink) {
  const auto proc = RootedDirectory::open("/proc/self", GetParam());
  ASSERT_OK(proc);
  EXPECT_EQ(proc->open_file("cwd/x", FileUse::kRead).code(), Code::kPermission);
  EXPECT_EQ(proc->open_file("exe", FileUse::kRead).code(), Code::kPermission);
}

TEST_P(RootedDirectoryTest, RejectsAbsolutePathsAndParentDirectories) {
  const RootedDirectory root = open();
  for (const char* below :
       {"", "..", ".", "../outside/secret", "session/../../outside/secret", "session/..",
        "/etc/passwd", "session//thread_0", "session/", "/", "./session"}) {
    EXPECT_EQ(root.open_file(below, FileUse::kRead).code(), Code::kInvalidArgument) << below;
    EXPECT_EQ(root.make_directory(below).code(), Code::kInvalidArgument) << below;
    EXPECT_EQ(root.remove_file(below).code(), Code::kInvalidArgument) << below;
    EXPECT_EQ(root.rename("session", below).code(), Code::kInvalidArgument) << below;
    EXPECT_EQ(root.rename(below, "new").code(), Code::kInvalidArgument) << below;
  }
  EXPECT_EQ(root.open_file(std::string_view("session\0x", 9), FileUse::kRead).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(root.list("../outside").code(), Code::kInvalidArgument);
}

TEST_P(RootedDirectoryTest, OnlyRegularFilesAreOpenedAndNothingWaits) {
  ASSERT_EQ(::mkfifo(path("root/pipe").c_str(), 0600), 0);
  expect_refused("pipe", "a named pipe");
  expect_refused("session", "a directory");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path("root/socket").size(), sizeof address.sun_path);
  path("root/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  expect_refused("socket", "a socket");
  // Devices exist below /dev for every user; /dev/null would take what is written.
  const auto devices = RootedDirectory::open("/dev", GetParam());
  ASSERT_OK(devices);
  for (const FileUse use : {FileUse::kRead, FileUse::kWrite, FileUse::kLock}) {
    const auto null = devices->open_file("null", use);
    ASSERT_EQ(null.code(), Code::kPermission);
    EXPECT_THAT(null.error().message, HasSubstr("a device"));
  }
}

TEST_P(RootedDirectoryTest, FileWithASecondNameIsReadOnly) {
  fs::create_hard_link(path("outside/secret"), path("root/session/index.atf"));
  const RootedDirectory root = open();
  EXPECT_OK(root.open_file("session/index.atf", FileUse::kRead));
  EXPECT_OK(root.open_file("session/index.atf", FileUse::kLock));
  for (const FileUse use : {FileUse::kWrite, FileUse::kAppend}) {
    const auto file = root.open_file("session/index.atf", use);
    ASSERT_EQ(file.code(), Code::kPermission);
    EXPECT_THAT(file.error().message, HasSubstr("2 names"));
  }
}

TEST_P(RootedDirectoryTest, DirectoryThatBecomesALinkBetweenTwoOperations) {
  const RootedDirectory root = open();
  ASSERT_OK(root.open_file("session/thread_0/index.atf", FileUse::kWrite));
  fs::rename(path("root/session/thread_0"), path("moved"));
  fs::create_directory_symlink(path("outside/thread_0"), path("root/session/thread_0"));
  EXPECT_EQ(root.open_file("session/thread_0/index.atf", FileUse::kWrite).code(),
            Code::kPermission);
  EXPECT_EQ(root.open_file("session/thread_0/new", FileUse::kCreate).code(), Code::kPermission);
  EXPECT_EQ(root.remove_file("session/thread_0/index.atf").code(), Code::kPermission);
  EXPECT_EQ(root.make_directory("session/thread_0/new").code(), Code::kPermission);
  EXPECT_EQ(root.rename("session/thread_0/index.atf", "mine").code(), Code::kPermission);
  put("root/mine", "mine");
  EXPECT_EQ(root.rename("mine", "session/thread_0/index.atf").code(), Code::kPermission);
  EXPECT_FALSE(root.remove_directory("session/thread_0").ok());
  // The link itself can go.
  EXPECT_OK(root.remove_file("session/thread_0"));
  EXPECT_FALSE(fs::exists(path("outside/thread_0/new")));
}

TEST_P(RootedDirectoryTest, RootIsTheDirectoryThatWasOpened) {
  const RootedDirectory root = open();
  fs::rename(path("root"), path("moved"));
  fs::create_directory_symlink(path("outside"), path("root"));
  EXPECT_EQ(root.open_file("secret", FileUse::kRead).code(), Code::kNotFound);
  EXPECT_OK(root.open_file("session/thread_0/index.atf", FileUse::kRead));
}

TEST_P(RootedDirectoryTest, LinkInTheTargetsPlaceIsReplacedNotFollowed) {
  const RootedDirectory root = open();
  put("root/manifest.json.new", "new");
  fs::create_symlink(path("outside/secret"), path("root/manifest.json"));
  ASSERT_OK(root.rename("manifest.json.new", "manifest.json"));
  EXPECT_FALSE(fs::is_symlink(path("root/manifest.json")));
  EXPECT_EQ(content(path("root/manifest.json")), "new");
}

TEST_P(RootedDirectoryTest, CreatesFilesForItsOwnerOrGroupOnly) {
  const mode_t before = ::umask(0);
  const auto make = [&](const std::string& name) {
    const RootedDirectory root = open();
    EXPECT_OK(root.make_directory(name));
    EXPECT_OK(root.open_file(name + "/file", FileUse::kCreate));
    return std::make_pair(mode_of("root/" + name), mode_of("root/" + name + "/file"));
  };
  EXPECT_EQ(make("a"), std::make_pair(mode_t{0700}, mode_t{0600}));  // the root is 0755
  fs::permissions(path("root"), fs::perms(0750));
  EXPECT_EQ(make("b"), std::make_pair(mode_t{0750}, mode_t{0640}));
  fs::permissions(path("root"), fs::perms(0700));
  EXPECT_EQ(make("c"), std::make_pair(mode_t{0700}, mode_t{0600}));
  ::umask(before);
}

TEST_P(RootedDirectoryTest, AppendsToTheEnd) {
  const RootedDirectory root = open();
  for (const char* text : {"one", "two"}) {
    const auto log = root.open_file("log", FileUse::kAppend);
    ASSERT_OK(log);
    ASSERT_EQ(::write(log->get(), text, 3), 3);
  }
  EXPECT_EQ(content(path("root/log")), "onetwo");
}

INSTANTIATE_TEST_SUITE_P(Lookups, RootedDirectoryTest,
                         testing::Values(Lookup::kKernel, Lookup::kEachComponent),
                         [](const auto& lookup) {
                           return lookup.param == Lookup::kKernel ? "Kernel" : "EachComponent";
                         });

TEST(NamedFile, MayBeALinkAndMustBeAFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/file", link = directory.path() + "/link";
  std::ofstream(file) << "x";
  fs::create_symlink("file", link);
  EXPECT_OK(open_named_file(link));
  ASSERT_EQ(::mkfifo((directory.path() + "/pipe").c_str(), 0600), 0);
  for (const char* name : {"/pipe", "", "/pipe"}) {
    const auto refused = open_named_file(directory.path() + name);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(open_named_file("/dev/null").code(), Code::kInvalidArgument);
  EXPECT_EQ(open_named_file(directory.path() + "/none").code(), Code::kNotFound);
}

}  // namespace
}  // namespace collect::storage::test
