// Which libraries of an app are copied from its phone, and what is said of those that are not.
#include "daemon/ctl/record/android/app/library_pull.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <sstream>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class LibraryPullTest : public PhoneTest {
 protected:
  LibraryPullTest() {
    app_.package = kApp;
    app_.code_directory = phone_ / "tmp/code";
    std::filesystem::create_directories(app_.code_directory);
    std::filesystem::create_directories(session_);
  }
  // A library of the session; of its functions so many have names.
  void add(const std::string& path, std::vector<uint8_t> build_id, uint64_t functions,
           uint64_t named) {
    const auto id = static_cast<uint32_t>(manifest_.modules.size());
    storage::ModuleInfo module;
    module.module_id = id;
    module.path = path;
    module.build_id = std::move(build_id);
    manifest_.modules.push_back(module);
    storage::ModuleSymbols symbols;
    symbols.module_id = id;
    symbols.functions = functions;
    symbols.named = named;
    manifest_.module_symbols.push_back(symbols);
  }
  std::string own(const std::string& name, bool is_there = true) {
    const std::string path = app_.code_directory + "/" + name;
    if (is_there) phone_.write(path, "the library " + name);
    return path;
  }
  void save() { phone_.write(session_ + "/manifest.json", storage::manifest_to_json(manifest_)); }
  static std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string session_ = phone_ / "session";
  storage::Manifest manifest_;
  AndroidApp app_;
  std::ostringstream err_;
};

TEST_F(LibraryPullTest, OnlyTheAppsOwnLibrariesWithoutNamesAreCopied) {
  add(own("liba.so"), {0xab, 0x0c}, 3, 2);
  add(own("libnamed.so"), {0x01}, 3, 3);
  add(own("libsilent.so"), {0x02}, 0, 0);
  add(own("libanonymous.so"), {}, 3, 0);
  add(own("base.apk!libinside.so"), {0x03}, 3, 0);
  add("/system/lib64/libc.so", {0x04}, 3, 0);
  add(app_.code_directory + "2/libother.so", {0x05}, 3, 0);
  add(own("libb.so"), {0xff, 0x10}, 1, 0);
  save();
  std::string folder;
  {
    LibraryPull pull(*device_, app_, err_);
    folder = pull.fetch(session_);
    ASSERT_NE(folder, "");
    EXPECT_EQ(files_in(folder), (std::vector<std::string>{"ab0c.debug", "ff10.debug"}));
    EXPECT_EQ(phone_.read(folder + "/ab0c.debug"), "the library liba.so");
    EXPECT_EQ(phone_.read(folder + "/ff10.debug"), "the library libb.so");
    const uint64_t copied = server_.requests("sync:");
    EXPECT_EQ(copied, 2u);
    EXPECT_EQ(pull.fetch(session_), folder) << "those of another session of the run";
    EXPECT_EQ(server_.requests("sync:"), copied) << "they are there";
  }
  EXPECT_FALSE(std::filesystem::exists(folder)) << "they go with it";
  EXPECT_EQ(err_.str(), "");
}

TEST_F(LibraryPullTest, ReportsMissingLibrariesAndCopiesTheOthers) {
  const std::string missing = own("libgone.so", false);
  add(missing, {0x01}, 1, 0);
  save();
  LibraryPull pull(*device_, app_, err_);
  EXPECT_EQ(pull.fetch(session_), "") << "nothing could be copied";
  const std::string line = "collectctl: no names from " + missing + ": R58M: " + missing +
                           ": open failed: No such file or directory\n";
  EXPECT_EQ(err_.str(), line);
  add(own("liba.so"), {0x02}, 1, 0);
  save();
  const std::string folder = pull.fetch(session_);
  EXPECT_EQ(files_in(folder), std::vector<std::string>{"02.debug"});
  EXPECT_EQ(err_.str(), line + line);
}

TEST_F(LibraryPullTest, PhoneThatWentIsAskedForNoMore) {
  add(own("liba.so"), {0x01}, 1, 0);
  add(own("libb.so"), {0x02}, 1, 0);
  save();
  server_.unplug("R58M");
  LibraryPull pull(*device_, app_, err_);
  EXPECT_EQ(pull.fetch(session_), "");
  EXPECT_THAT(err_.str(), HasSubstr("liba.so: "));
  EXPECT_THAT(err_.str(), ::testing::Not(HasSubstr("libb.so")));
}

TEST_F(LibraryPullTest, NoMoreThanSoMany) {
  for (size_t at = 0; at < kMaxPulledLibraries + 1; ++at) {
    add(own("lib" + std::to_string(at) + ".so"), {static_cast<uint8_t>(at)}, 1, 0);
  }
  save();
  LibraryPull pull(*device_, app_, err_);
  EXPECT_EQ(files_in(pull.fetch(session_)).size(), 64u);
  EXPECT_EQ(err_.str(), "collectctl: no names from " + app_.code_directory +
                            "/lib64.so: enough was copied from the phone\n");
}

TEST_F(LibraryPullTest, NoMoreThanSoMuch) {
  add(own("liba.so"), {0x01}, 1, 0);
  add(own("libb.so"), {0x02}, 1, 0);
  add(own("libc.so"), {0x03}, 1, 0);
  save();
  const size_t bytes = std::string("the library liba.so").size();
  const std::string folder = app_.code_directory;
  {
    LibraryPull pull(*device_, app_, err_, 2 * bytes);
    EXPECT_EQ(files_in(pull.fetch(session_)), (std::vector<std::string>{"01.debug", "02.debug"}));
    EXPECT_EQ(err_.str(), "collectctl: no names from " + folder +
                              "/libc.so: enough was copied from the phone\n");
  }
  err_.str("");
  LibraryPull pull(*device_, app_, err_, 2 * bytes - 1);
  EXPECT_EQ(files_in(pull.fetch(session_)), std::vector<std::string>{"01.debug"});
  const auto too_large = [&](const std::string& name) {
    return "collectctl: no names from " + folder + name + ": R58M: " + folder + name +
           ": it has more than " + std::to_string(bytes - 1) + " bytes\n";
  };
  EXPECT_EQ(err_.str(), too_large("/libb.so") + too_large("/libc.so"));
}

TEST_F(LibraryPullTest, WithoutAPlaceForThemThereAreNone) {
  add(own("liba.so"), {0x01}, 1, 0);
  save();
  const char* const variable = std::getenv("TMPDIR");
  const std::string before = variable == nullptr ? "" : variable;
  ::setenv("TMPDIR", "/proc", 1);  // where nothing can be made
  LibraryPull pull(*device_, app_, err_);
  EXPECT_EQ(pull.fetch(session_), "");
  variable == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  EXPECT_THAT(err_.str(), ::testing::StartsWith("collectctl: no names from " + app_.code_directory +
                                                "/liba.so: /proc: "));
  EXPECT_EQ(server_.requests("sync:"), 0u);
}

TEST_F(LibraryPullTest, SessionThatIsNoneHasNone) {
  LibraryPull pull(*device_, app_, err_);
  EXPECT_EQ(pull.fetch(session_), "");
  phone_.write(session_ + "/manifest.json", "{");
  EXPECT_EQ(pull.fetch(session_), "");
  EXPECT_EQ(err_.str(), "");
}

}  // namespace
}  // namespace collect::ctl
