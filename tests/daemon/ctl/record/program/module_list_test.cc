#include "daemon/ctl/record/program/module_list.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

TEST(ModuleListTest, ReadsWhatTheDynamicLinkerPrints) {
  // ld-linux-x86-64.so.2 --list of glibc 2.36.
  const std::string text =
      "\tlinux-vdso.so.1 (0x00007ffd2d3c6000)\n"
      "\tlibreadline.so.8 => /lib/x86_64-linux-gnu/libreadline.so.8 (0x00007f5e0a4e5000)\n"
      "\tlibodd.so => /a folder/with (brackets)/libodd.so (0x00007f5e0a404000)\n"
      "\tlibmissing.so => not found\n"
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f5e0a579000)\n";
  EXPECT_EQ(modules_in_list(text),
            (std::vector<std::string>{"/lib/x86_64-linux-gnu/libreadline.so.8",
                                      "/a folder/with (brackets)/libodd.so"}));
  EXPECT_TRUE(modules_in_list("").empty());
  EXPECT_TRUE(modules_in_list("=> /\n (0x\n=> / (0x").size() <= 1);
}

TEST(ModuleListTest, ListsAProgramAndItsLibraries) {
  const auto modules = list_modules("/usr/bin/git", {});
  ASSERT_TRUE(modules.ok()) << modules.error().message;
  EXPECT_EQ(modules->front(), "/usr/bin/git");
  const auto has = [&modules](const std::string& name) {
    return std::any_of(modules->begin(), modules->end(), [&name](const std::string& path) {
      return fs::path(path).filename() == name;
    });
  };
  EXPECT_TRUE(has("libz.so.1"));
  EXPECT_TRUE(has("libc.so.6"));
}

TEST(ModuleListTest, TextIsNoProgram) {
  EXPECT_EQ(list_modules("/etc/passwd", {}).code(), Code::kUnsupported);
  EXPECT_EQ(list_modules("/no/such/program", {}).code(), Code::kUnsupported);
}

class StartedProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "scripts-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string script(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    EXPECT_EQ(::chmod((folder_ + "/" + name).c_str(), 0755), 0);
    return folder_ + "/" + name;
  }

  std::string folder_;
};

TEST_F(StartedProgramTest, FollowsInterpreters) {
  EXPECT_EQ(started_program("/usr/bin/git"), "/usr/bin/git");
  EXPECT_EQ(started_program(script("a", "#!/bin/sh\n")), "/bin/sh");
  EXPECT_EQ(started_program(script("b", "#! /usr/bin/perl -w\n")), "/usr/bin/perl");
  EXPECT_EQ(started_program(script("c", "#!/usr/bin/env -S X=1 git --version\n")), "/usr/bin/git");
  EXPECT_EQ(started_program(script("d", "#!" + folder_ + "/b")), "/usr/bin/perl");
  EXPECT_EQ(started_program(script("e", "no script\n")), folder_ + "/e");
  EXPECT_EQ(started_program(script("f", "#!/usr/bin/env no_such_program_anywhere\n")),
            "/usr/bin/env");
  // Its own interpreter: the kernel gives up, and so does this.
  EXPECT_EQ(started_program(script("g", "#!" + folder_ + "/g\n")), folder_ + "/g");
}

}  // namespace
}  // namespace collect::ctl
