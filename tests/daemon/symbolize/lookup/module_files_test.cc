#include "daemon/symbolize/lookup/module_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "daemon/symbolize/limits.h"
#include "tests/daemon/symbolize/scratch.h"
#include "tests/fakes/machine/older_kernel.h"

namespace collect::symbolize::test {
namespace {

bool opens(const std::string& path, const std::vector<std::string>& roots = {"/"}) {
  const int fd = open_module_file(path, roots);
  if (fd == -1) return false;
  EXPECT_EQ(::close(fd), 0);
  return true;
}

TEST(ModuleFiles, OpensRegularFilesThroughOrdinaryLinks) {
  const Scratch scratch;
  const std::string file = scratch.write("libapp.so", {1, 2, 3});
  std::filesystem::create_symlink(file, scratch.file("link.so"));
  EXPECT_TRUE(opens(file));
  EXPECT_TRUE(opens(scratch.file("link.so")));
  EXPECT_TRUE(opens(scratch.path() + "/./libapp.so"));
  EXPECT_FALSE(opens(scratch.file("missing.so")));
  EXPECT_FALSE(opens("libapp.so")) << "relative to nothing that a peer could know";
  EXPECT_FALSE(opens(file + std::string("\0x", 2)));
  EXPECT_FALSE(opens(""));
}

TEST(ModuleFiles, OpensNothingButRegularFilesAndNeverWaits) {
  const Scratch scratch;
  const std::string pipe = scratch.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(opens(pipe));
  EXPECT_FALSE(opens(scratch.path()));
  EXPECT_FALSE(opens("/dev/null"));
  EXPECT_FALSE(opens("/dev/zero"));
}

// What an unpacked archive brings, named by where a process happens to stand.
TEST(ModuleFiles, OpensNothingThroughMagicLinks) {
  const Scratch scratch;
  const std::string file = scratch.write("x.so", {1});
  const int directory = ::open(scratch.path().c_str(), O_PATH | O_DIRECTORY);
  ASSERT_GE(directory, 0);
  const std::string magic = "/proc/self/fd/" + std::to_string(directory) + "/x.so";
  ASSERT_EQ(::access(magic.c_str(), R_OK), 0) << "it leads there";
  EXPECT_FALSE(opens(magic));
  EXPECT_FALSE(opens("/proc/self/root" + file));
  std::filesystem::create_symlink("/proc/self/root" + scratch.path(), scratch.file("around"));
  EXPECT_FALSE(opens(scratch.file("around/x.so")));
  EXPECT_TRUE(opens(file));
  ::close(directory);
}

TEST(ModuleFiles, OpensNothingOfTheKernel) {
  EXPECT_FALSE(opens("/proc/self/exe"));
  EXPECT_FALSE(opens("/proc/version"));
  EXPECT_FALSE(opens("/sys/kernel/notes"));
  const Scratch scratch;
  std::filesystem::create_symlink("/proc/version", scratch.file("version"));
  EXPECT_FALSE(opens(scratch.file("version")));
  EXPECT_FALSE(opens("/dev/shm/../../proc/version"));
}

// Wherever it is mounted.
TEST(ModuleFiles, OpensNothingOfTheKernelsFileSystems) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.file("mounted"));
  constexpr int kNoNamespace = 77;
  fakes::OtherUser child(
      [&] {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("/proc", scratch.file("mounted").c_str(), nullptr, MS_BIND, nullptr) != 0 ||
            ::access(scratch.file("mounted/version").c_str(), R_OK) != 0) {
          return kNoNamespace;
        }
        return opens(scratch.file("mounted/version")) ? 1 : 0;
      },
      ::getuid());
  const int outcome = child.wait();
  if (outcome == kNoNamespace) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(outcome, 0);
}

// SYMBOLIZE.md "Which file": where the kernel has no openat2, through no link at all.
TEST(ModuleFiles, WithoutOpenat2ThroughNoLink) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.file("a/b"));
  const std::string file = scratch.write("a/b/libapp.so", {1});
  std::filesystem::create_symlink(file, scratch.file("link.so"));
  std::filesystem::create_directory_symlink(scratch.file("a"), scratch.file("around"));
  ASSERT_TRUE(opens(scratch.file("link.so")));
  ASSERT_TRUE(opens(scratch.file("around/b/libapp.so")));
  for (const int error : {ENOSYS, EPERM}) {
    const int wrong = fakes::without_system_call(
        SYS_openat2,
        [&] {
          if (!opens(file) || !opens("/" + scratch.path() + "/a//b/libapp.so")) return 1;
          if (opens(scratch.file("link.so"))) return 2;
          if (opens(scratch.file("around/b/libapp.so"))) return 3;
          if (opens(scratch.file("a/b/../b/libapp.so"))) return 4;
          if (opens(scratch.file("a/b")) || opens("/") || opens("/proc/version")) return 5;
          if (opens(scratch.file("a/b/missing")) || opens(scratch.file("a/c/libapp.so"))) return 6;
          return opens(file, {scratch.file("a/b")}) && !opens(file, {scratch.file("b")}) ? 0 : 7;
        },
        error);
    EXPECT_EQ(wrong, 0) << error;
  }
  EXPECT_NE(fakes::without_system_call(
                SYS_openat2, [&] { return opens(file) ? 1 : 0; }, EACCES),
            1)
      << "any other fault is one of the path";
}

TEST(ModuleFiles, OpensNothingBelowDev) {
  std::string path = "/dev/shm/module_files_XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) GTEST_SKIP() << "no /dev/shm";
  ::close(fd);
  EXPECT_FALSE(opens(path));
  ::unlink(path.c_str());
}

TEST(ModuleFiles, RootsBoundWhereLinksLead) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.file("inside"));
  std::filesystem::create_directories(scratch.file("inside-not"));
  const std::string inside = scratch.write("inside/a.so", {1});
  const std::string outside = scratch.write("inside-not/a.so", {1});
  std::filesystem::create_symlink(outside, scratch.file("inside/link.so"));
  const std::vector<std::string> roots = {scratch.file("inside")};
  EXPECT_TRUE(opens(inside, roots));
  EXPECT_FALSE(opens(outside, roots));
  EXPECT_FALSE(opens(scratch.file("inside/link.so"), roots));
  EXPECT_FALSE(opens(scratch.file("inside/../inside-not/a.so"), roots));
  EXPECT_FALSE(opens(inside, {}));
}

TEST(ModuleFiles, OpensNothingLargerThanItMayBe) {
  const Scratch scratch;
  const std::string file = scratch.write("large.so", {1});
  if (::truncate(file.c_str(), static_cast<off_t>(kMaxModuleFileBytes)) != 0) {
    GTEST_SKIP() << "no such sparse file here";
  }
  EXPECT_TRUE(opens(file));
  ASSERT_EQ(::truncate(file.c_str(), static_cast<off_t>(kMaxModuleFileBytes) + 1), 0);
  EXPECT_FALSE(opens(file));
}

TEST(ModuleFiles, SlashesOfARootMeanNothing) {
  const Scratch scratch;
  const std::string file = scratch.write("a.so", {1});
  std::filesystem::create_directories(scratch.file("b"));
  EXPECT_TRUE(opens(file, {scratch.path() + "/"}));
  EXPECT_TRUE(opens(file, {scratch.path() + "//"}));
  EXPECT_TRUE(opens(file, {file}));
  EXPECT_FALSE(opens(file, {scratch.file("b") + "/"}));
}

TEST(ModuleFiles, NoMoreFilesAreOpenedThanTheLimit) {
  const Scratch scratch;
  LookupRequest request;
  request.module_path = scratch.write("libapp.so", {1});
  request.build_id = {0xab};  // too short to look for
  request.roots = {"/"};
  request.directories.assign(kMaxCandidates, scratch.path());
  const auto files = open_module_files(request);
  EXPECT_EQ(files.size(), kMaxCandidates);
  EXPECT_TRUE(files[0].is_own_path());
  EXPECT_FALSE(files[1].is_own_path());
  EXPECT_EQ(files.back().path(), scratch.file("libapp.so"));
  request.build_id.clear();
  EXPECT_EQ(open_module_files(request).size(), 1u) << "nothing but its own path";
}

// SYMBOLIZE.md "Limits": entries in the order in which the directory has them.
TEST(ModuleFiles, DirectoryIsSearchedUpToTheLimit) {
  const Scratch scratch;
  for (size_t count = 2; count <= kMaxDirectoryEntries; ++count) {  // with "." and ".."
    const int fd = ::open(scratch.file(std::to_string(count)).c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_GE(fd, 0) << count;
    ::close(fd);
  }
  std::vector<std::string> names;
  DIR* const entries = ::opendir(scratch.path().c_str());
  ASSERT_NE(entries, nullptr);
  while (const dirent* const entry = ::readdir(entries)) names.emplace_back(entry->d_name);
  ::closedir(entries);
  ASSERT_EQ(names.size(), kMaxDirectoryEntries + 1);
  const auto finds = [&](const std::string& name) {
    LookupRequest request;
    request.module_path = "/x/" + name;
    request.build_id = {0xab};  // too short to look for
    request.roots = {"/"};
    request.directories = {scratch.path()};
    return open_module_files(request).size();
  };
  EXPECT_EQ(finds(names[kMaxDirectoryEntries - 1]), 1u);
  EXPECT_EQ(finds(names[kMaxDirectoryEntries]), 0u);
}

TEST(ModuleFiles, EveryWayToWriteABuildId) {
  const Scratch scratch;
  LookupRequest request;
  request.build_id = {0xab, 0x0f};
  request.roots = {"/"};
  request.directories = {scratch.path()};
  std::filesystem::create_directories(scratch.file(".build-id/ab"));
  std::filesystem::create_directories(scratch.file("ab"));
  for (const char* name : {".build-id/ab/0f.debug", ".build-id/ab/0f", "ab/0f.debug", "ab0f.debug",
                           "ab0f", "ab0f.so", "0fab"}) {
    scratch.write(name, {1});
  }
  std::vector<std::string> found;
  for (const ModuleFile& file : open_module_files(request)) found.push_back(file.path());
  EXPECT_EQ(found,
            (std::vector<std::string>{scratch.file(".build-id/ab/0f.debug"),
                                      scratch.file(".build-id/ab/0f"), scratch.file("ab/0f.debug"),
                                      scratch.file("ab0f.debug"), scratch.file("ab0f")}));
}

// What is left of it would be a directory, or the name of a file that is there by chance.
TEST(ModuleFiles, BuildIdOfOneByteIsNotLookedFor) {
  const Scratch scratch;
  LookupRequest request;
  request.build_id = {0xab};
  request.roots = {"/"};
  request.directories = {scratch.path()};
  std::filesystem::create_directories(scratch.file(".build-id/ab"));
  for (const char* name : {".build-id/ab/.debug", "ab", "ab.debug"}) scratch.write(name, {1});
  EXPECT_TRUE(open_module_files(request).empty());
}

TEST(ModuleFiles, OnlyTheSameNameIsTheSame) {
  const Scratch scratch;
  LookupRequest request;
  request.build_id = {0xab};  // too short to look for
  request.roots = {"/"};
  request.directories = {scratch.path()};
  for (const char* name : {".debug", "libapp.so.other", "libapp.so.debugs", "other.so.debug"}) {
    scratch.write(name, {1});
  }
  request.module_path = "/x/libapp.so";
  EXPECT_TRUE(open_module_files(request).empty());
  request.module_path = "/x/";
  EXPECT_TRUE(open_module_files(request).empty()) << "a path without a name";
  request.module_path = "other.so";
  EXPECT_EQ(open_module_files(request).size(), 1u);
}

TEST(ModuleFiles, FilesAreClosedWithTheirObjects) {
  const Scratch scratch;
  LookupRequest request;
  request.module_path = scratch.write("libapp.so", {1});
  request.roots = {"/"};
  const auto count_open = [] {
    const std::filesystem::directory_iterator descriptors("/proc/self/fd");
    return std::distance(begin(descriptors), end(descriptors));
  };
  const auto before = count_open();
  {
    const auto files = open_module_files(request);
    ASSERT_EQ(files.size(), 1u);
    EXPECT_EQ(count_open(), before + 1) << "the handle that was looked at first is closed";
    EXPECT_EQ(::fcntl(files[0].fd(), F_GETFD), FD_CLOEXEC);
    const int flags = ::fcntl(files[0].fd(), F_GETFL);
    EXPECT_EQ(flags & O_ACCMODE, O_RDONLY);
    EXPECT_NE(flags & O_NONBLOCK, 0);
  }
  EXPECT_EQ(count_open(), before);
  EXPECT_FALSE(opens(scratch.path()));
  EXPECT_EQ(count_open(), before);
}

TEST(ModuleFiles, SearchesDirectoriesByBuildIdAndByName) {
  const Scratch scratch;
  LookupRequest request;
  request.module_path = "/data/app/libapp.so";  // of a device
  request.build_id = {0xab, 0xcd, 0xef};
  request.roots = {"/"};
  request.directories = {scratch.path()};
  EXPECT_TRUE(open_module_files(request).empty());
  std::filesystem::create_directories(scratch.file(".build-id/ab"));
  scratch.write(".build-id/ab/cdef.debug", {1});
  scratch.write("libapp.so", {1});
  scratch.write("libapp.so.debug", {1});
  scratch.write("other.so", {1});
  const auto files = open_module_files(request);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].path(), scratch.file(".build-id/ab/cdef.debug"));
  EXPECT_EQ(files[1].path(), scratch.file("libapp.so"));
  EXPECT_EQ(files[2].path(), scratch.file("libapp.so.debug"));
  request.module_path = "/x/../other.so/..";  // a peer's words never walk through directories
  EXPECT_EQ(open_module_files(request).size(), 1u);
}

}  // namespace
}  // namespace collect::symbolize::test
