#include "storage/fs/posix_fs.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class PosixFsTest : public ::testing::Test {
 protected:
  std::string path(const char* name) { return root.path() + "/" + name; }
  TemporaryDirectory root;
  PosixFs fs;
};

TEST_F(PosixFsTest, WritesMorePartsThanOneCallTakes) {
  auto file = fs.open(path("parts"), OpenMode::kCreate);
  ASSERT_OK(file);
  std::vector<uint8_t> expected(5000);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = uint8_t(i * 7);
  std::vector<Bytes> parts;
  for (size_t i = 0; i < expected.size(); ++i) {
    parts.push_back(Bytes(expected).subspan(i, 1));
    if (i % 3 == 0) parts.push_back({});
  }
  ASSERT_OK((*file)->write_at(10, parts));
  EXPECT_EQ(*(*file)->size(), 5010u);
  std::vector<uint8_t> got(6000);
  auto count = (*file)->read_at(10, got);
  ASSERT_OK(count);
  EXPECT_EQ(*count, 5000u);  // fewer than asked only at the end
  got.resize(*count);
  EXPECT_EQ(got, expected);
  ASSERT_OK((*file)->write_at(0, {}));
  ASSERT_OK((*file)->sync());
  ASSERT_OK((*file)->truncate(3));
  EXPECT_EQ(*(*file)->size(), 3u);
}

TEST_F(PosixFsTest, ErrorsSayWhatWhereAndWhy) {
  auto missing = fs.open(path("missing"), OpenMode::kReadWrite);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.error().message.find(path("missing")), std::string::npos);

  ASSERT_OK(fs.open(path("file"), OpenMode::kCreate));
  auto twice = fs.open(path("file"), OpenMode::kCreate);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.code(), Code::kAlreadyExists);

  auto device = fs.open("/dev/full", OpenMode::kReadWrite);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.code(), Code::kPermission);
  EXPECT_NE(device.error().message.find("/dev/full: is a device"), std::string::npos);
  auto blocked = fs.open(path("file/below"), OpenMode::kRead);
  ASSERT_FALSE(blocked.ok());
  EXPECT_EQ(blocked.code(), Code::kNotFound);
}

// Remembers what is asked for, and makes nothing.
class NamedDirectories final : public Fs {
 public:
  std::vector<std::string> there;
  std::string forbidden;
  std::vector<std::string> calls;

  Status make_directory(const std::string& path) override {
    if (path == forbidden) return Error{Code::kPermission, path};
    if (exists(path)) return Error{Code::kAlreadyExists, path};
    calls.push_back("make " + path);
    return {};
  }
  Status sync_directory(const std::string& path) override {
    calls.push_back("sync " + path);
    return {};
  }
  bool exists(const std::string& path) override {
    return std::find(there.begin(), there.end(), path) != there.end();
  }
  Result<std::unique_ptr<File>> open(const std::string&, OpenMode) override { return no(); }
  Status rename(const std::string&, const std::string&) override { return no(); }
  Status remove_file(const std::string&) override { return no(); }
  Status remove_directory(const std::string&) override { return no(); }
  Result<std::vector<std::string>> list_directory(const std::string&) override { return no(); }
  Result<SpaceInfo> space(const std::string&) override { return no(); }
  Result<std::unique_ptr<FileLock>> lock(const std::string&) override { return no(); }

 private:
  static Error no() { return {Code::kUnsupported, ""}; }
};

// Every file system's way, unless it has another: each level is made and then named durably.
TEST(MakeDirectories, MakesMissingLevelsAndSyncsTheirParents) {
  using Calls = std::vector<std::string>;
  const auto made = [](const std::string& path, std::vector<std::string> there = {}) {
    NamedDirectories names;
    names.there = std::move(there);
    EXPECT_OK(names.make_directories(path));
    return names.calls;
  };
  EXPECT_EQ(made("/a"), (Calls{"make /a", "sync /"}));
  EXPECT_EQ(made("/a/b", {"/a"}), (Calls{"make /a/b", "sync /a"}));
  EXPECT_EQ(made("/a/b/c", {"/a"}), (Calls{"make /a/b", "sync /a", "make /a/b/c", "sync /a/b"}));
  EXPECT_EQ(made("a/b"), (Calls{"make a", "sync .", "make a/b", "sync a"}));
  EXPECT_EQ(made("x"), (Calls{"make x", "sync ."}));
  EXPECT_EQ(made("/a/b", {"/a", "/a/b"}), Calls{});
  NamedDirectories names;
  names.forbidden = "/a/b";
  const Status refused = names.make_directories("/a/b/c");
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_EQ(refused.error().message, "/a/b");
  EXPECT_EQ(names.calls, (Calls{"make /a", "sync /"}));
}

TEST_F(PosixFsTest, DirectoriesAndNames) {
  ASSERT_OK(fs.make_directories(path("a/b/c")));
  ASSERT_OK(fs.make_directories(path("a/b/c")));
  const Status again = fs.make_directory(path("a/b"));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
  ASSERT_OK(fs.open(path("a/z"), OpenMode::kCreate));
  EXPECT_EQ(*fs.list_directory(path("a")), (std::vector<std::string>{"b", "z"}));
  ASSERT_OK(fs.rename(path("a/z"), path("a/y")));
  EXPECT_FALSE(fs.exists(path("a/z")));
  EXPECT_TRUE(fs.exists(path("a/y")));
  ASSERT_OK(fs.sync_directory(path("a")));
  EXPECT_FALSE(fs.remove_directory(path("a")).ok());  // not empty
  ASSERT_OK(fs.remove_file(path("a/y")));
  ASSERT_OK(fs.remove_directory(path("a/b/c")));
  // A file in the way is named.
  ASSERT_OK(fs.open(path("file"), OpenMode::kCreate));
  const Status blocked = fs.make_directories(path("file/below"));
  ASSERT_FALSE(blocked.ok());
  EXPECT_NE(blocked.error().message.find(path("file")), std::string::npos);
  ASSERT_EQ(::symlink("nowhere", path("dangling").c_str()), 0);
  EXPECT_TRUE(fs.exists(path("dangling")));
  auto space = fs.space(root.path());
  ASSERT_OK(space);
  EXPECT_GT(space->total_bytes, 0u);
  EXPECT_LE(space->free_bytes, space->total_bytes);
}

// A file that may not grow beyond 5000 bytes: the system writes a part of what it is given, and
// nothing of the rest.
TEST_F(PosixFsTest, ContinuesAShortWriteUntilTheError) {
  struct Limit {
    Limit() {
      ::getrlimit(RLIMIT_FSIZE, &before);
      handler = ::signal(SIGXFSZ, SIG_IGN);
      rlimit small = before;
      small.rlim_cur = 5000;
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Limit() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      ::signal(SIGXFSZ, handler);
    }
    rlimit before{};
    void (*handler)(int) = nullptr;
  };
  auto file = fs.open(path("limited"), OpenMode::kCreate);
  ASSERT_OK(file);
  std::vector<uint8_t> expected(8000);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = uint8_t(i * 7);
  const Bytes all(expected);
  const Bytes parts[] = {all.first(1000), all.subspan(1000, 3000), all.subspan(4000)};
  Status status;
  {
    Limit limit;
    status = (*file)->write_at(0, parts);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_NE(status.error().message.find("write at 5000"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(read_file(path("limited")),
            std::vector<uint8_t>(expected.begin(), expected.begin() + 5000));
}

TEST_F(PosixFsTest, QuotaIsNoSpace) {
  EXPECT_EQ(errno_error(EDQUOT, "file").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(ENOSPC, "file").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(EROFS, "file").code, Code::kPermission);
  EXPECT_EQ(errno_error(EIO, "file").code, Code::kIo);
}

TEST_F(PosixFsTest, PathsOutsideOfItsRootAreRefused) {
  std::filesystem::create_directories(path("inside/a"));
  ASSERT_OK(fs.open(path("file"), OpenMode::kCreate));
  PosixFs rooted(path("inside") + "/");
  ASSERT_OK(rooted.open(path("inside/a/file"), OpenMode::kCreate));
  ASSERT_OK(rooted.open(path("inside//a/file"), OpenMode::kRead));
  EXPECT_EQ(*rooted.list_directory(path("inside")), std::vector<std::string>{"a"});
  ASSERT_OK(rooted.sync_directory(path("inside/")));
  ASSERT_OK(rooted.space(path("inside")));
  for (const std::string& outside :
       {path("file"), path("inside2"), path(""), std::string("file"), std::string("/etc/hosts"),
        std::string(), path("inside/../file"), path("inside/a/../../file")}) {
    EXPECT_EQ(rooted.open(outside, OpenMode::kRead).code(), Code::kInvalidArgument) << outside;
    EXPECT_EQ(rooted.remove_file(outside).code(), Code::kInvalidArgument) << outside;
    EXPECT_EQ(rooted.rename(path("inside/a/file"), outside).code(), Code::kInvalidArgument);
    EXPECT_EQ(rooted.lock(outside).code(), Code::kInvalidArgument) << outside;
  }
  EXPECT_EQ(rooted.list_directory(path("")).code(), Code::kInvalidArgument);
  EXPECT_EQ(rooted.make_directory(path("inside2")).code(), Code::kInvalidArgument);
  EXPECT_TRUE(fs.exists(path("file")));
}

TEST_F(PosixFsTest, WithoutARootNoComponentMayBeALink) {
  std::filesystem::create_directories(path("real/a"));
  std::filesystem::create_directory_symlink("real", path("link"));
  EXPECT_EQ(fs.make_directory(path("link/b")).code(), Code::kPermission);
  EXPECT_EQ(fs.list_directory(path("link")).code(), Code::kPermission);
  PosixFs linked(path("link"));
  ASSERT_OK(linked.make_directories(path("link/a/b/c")));
  EXPECT_TRUE(std::filesystem::is_directory(path("real/a/b/c")));
}

TEST_F(PosixFsTest, RelativeRoot) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(path("here/out"));
  std::filesystem::current_path(path("here"));
  PosixFs here(".");
  PosixFs out("out/new");
  Status made = here.make_directories("session_1/pid_7");
  if (made.ok()) made = out.make_directories("out/new/session_1");
  const auto up = here.open("../file", OpenMode::kCreate);
  std::filesystem::current_path(before);
  ASSERT_OK(made);
  EXPECT_EQ(up.code(), Code::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_directory(path("here/session_1/pid_7")));
  ASSERT_OK(out.open(path("here/out/new/session_1/file"), OpenMode::kCreate));
}

TEST_F(PosixFsTest, MovedRootIsFoundOnlyWhileHeld) {
  PosixFs rooted(path("root"));
  ASSERT_OK(rooted.make_directories(path("root")));
  EXPECT_EQ(std::filesystem::status(path("root")).permissions(), std::filesystem::perms(0700));
  ASSERT_OK(rooted.open(path("root/old"), OpenMode::kCreate));
  auto directory = RootedDirectory::open(path("root"));
  ASSERT_OK(directory);
  PosixFs held(std::move(*directory));
  ASSERT_OK(fs.rename(path("root"), path("moved")));
  EXPECT_EQ(rooted.open(path("root/new"), OpenMode::kCreate).code(), Code::kNotFound);
  EXPECT_FALSE(rooted.exists(path("root/old")));
  ASSERT_OK(rooted.make_directories(path("root")));
  ASSERT_OK(rooted.open(path("root/new"), OpenMode::kCreate));
  EXPECT_TRUE(fs.exists(path("root/new")));
  ASSERT_OK(held.open(path("root/of_held"), OpenMode::kCreate));
  EXPECT_TRUE(fs.exists(path("moved/of_held")));
}

// As by Ctrl-C, which removes what a conversion has begun.
TEST_F(PosixFsTest, RootThatIsHeldIsNotMadeAgain) {
  EXPECT_EQ(PosixFs::hold(path("root")).code(), Code::kNotFound);
  ASSERT_OK(fs.make_directory(path("root")));
  auto held = PosixFs::hold(path("root"));
  ASSERT_OK(held);
  EXPECT_EQ(held->root(), path("root"));
  ASSERT_OK(held->make_directories(path("root/before")));
  ASSERT_OK(fs.remove_directory(path("root/before")));
  ASSERT_OK(fs.remove_directory(path("root")));
  EXPECT_EQ(held->make_directories(path("root/after")).code(), Code::kNotFound);
  EXPECT_FALSE(fs.exists(path("root")));
}

// The root's own directories are its owner's alone; those that lead to it are everybody's who the
// umask lets in, as `mkdir -p` makes them.
TEST_F(PosixFsTest, CreatesParentsOfTheRootWithTheUmask) {
  PosixFs rooted(path("a/b/store"));
  const mode_t before = ::umask(0);
  const Status made = rooted.make_directories(path("a/b/store/session"));
  ::umask(before);
  ASSERT_OK(made);
  using filesystem_perms = std::filesystem::perms;
  const auto mode_of = [&](const char* name) {
    return std::filesystem::status(path(name)).permissions();
  };
  EXPECT_EQ(mode_of("a"), filesystem_perms(0777));
  EXPECT_EQ(mode_of("a/b"), filesystem_perms(0777));
  EXPECT_EQ(mode_of("a/b/store"), filesystem_perms(0700));
  EXPECT_EQ(mode_of("a/b/store/session"), filesystem_perms(0700));
}

TEST_F(PosixFsTest, SlashesAtTheEndNameTheSameDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(path("x/y"));
  std::filesystem::current_path(path(""));
  PosixFs here("."), slash("./"), everything("/");
  const std::vector<std::string> y{"y"};
  for (const char* name : {"x", "x/", "x//"}) {
    for (PosixFs* one : {&here, &slash}) {
      const auto listed = one->list_directory(name);
      EXPECT_OK(listed);
      if (listed.ok()) {
        EXPECT_EQ(*listed, y) << name;
      }
      EXPECT_TRUE(one->exists(name)) << name;
    }
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(everything.exists("/"));
  EXPECT_OK(everything.list_directory("/"));
  EXPECT_OK(everything.list_directory("//"));
  EXPECT_EQ(*everything.list_directory(path("x//")), y);
}

TEST_F(PosixFsTest, LockIsHeldOnce) {
  auto held = fs.lock(path("lock"));
  ASSERT_OK(held);
  auto second = fs.lock(path("lock"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kUnavailable);
  held->reset();
  auto mine = fs.lock(path("lock"));
  ASSERT_OK(mine);
  EXPECT_TRUE((*mine)->holds(path("lock")));
  ASSERT_OK(fs.rename(path("lock"), path("moved")));
  EXPECT_FALSE((*mine)->holds(path("lock")));
  ASSERT_OK(fs.open(path("lock"), OpenMode::kCreate));
  EXPECT_FALSE((*mine)->holds(path("lock")));
}

}  // namespace
}  // namespace collect::storage::test
