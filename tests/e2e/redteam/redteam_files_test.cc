// A session that someone else packed, or may write into: its files are replaced by links, second
// names and named pipes that lead to a file of ours. Nothing may be written to that file, read out
// of it, waited for, or left unsaid: by no command, and not by the daemon.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/storage/found_states.h"

namespace collect::e2e {
namespace {

namespace filesystem = std::filesystem;
using filesystem::path;

constexpr char kSecret[] = "a file of someone else, which no session has";

enum class Trick { kLink, kDanglingLink, kHardLink, kPipe };
constexpr Trick kTricks[] = {Trick::kLink, Trick::kDanglingLink, Trick::kHardLink, Trick::kPipe};

std::string said_by(const Ending& ending) {
  return ending.describe() + "\n" + ending.output + ending.errors;
}

bool names(const Ending& ending, const std::string& file) {
  return said_by(ending).find(file) != std::string::npos;
}

class RedteamFiles : public testing::Test {
 protected:
  RedteamFiles() {
    write_text_file(victim_, kSecret);
    filesystem::create_directory(scratch_ / "elsewhere");
    write_text_file(scratch_ / "elsewhere/index.atf", kSecret);
  }
  ~RedteamFiles() override {
    EXPECT_EQ(read_text_file(victim_), kSecret);
    EXPECT_EQ(read_text_file(scratch_ / "elsewhere/index.atf"), kSecret);
    EXPECT_FALSE(filesystem::exists(scratch_ / "nowhere"));
  }

  // A recording whose daemon is gone (40 events with detail records), or another row of
  // STORAGE.md "Recovery".
  std::string session(const std::string& root, const std::string& row = "Recording") {
    filesystem::create_directories(scratch_ / root);
    const auto& states = storage::test::found_states();
    const auto found = std::find_if(states.begin(), states.end(),
                                    [&row](const auto& one) { return row == one.row; });
    EXPECT_NE(found, states.end()) << row;
    return found->make(scratch_ / root);
  }
  std::string sealed_session(const std::string& root) {
    const std::string directory = session(root);
    const Ending sealed = ctl({"recover", directory});
    EXPECT_TRUE(sealed.exited_with(0)) << said_by(sealed);
    return directory;
  }
  void plant(const std::string& at, Trick trick) {
    filesystem::remove_all(at);
    if (trick == Trick::kLink) filesystem::create_symlink(victim_, at);
    if (trick == Trick::kDanglingLink) filesystem::create_symlink(scratch_ / "nowhere", at);
    if (trick == Trick::kHardLink) filesystem::create_hard_link(victim_, at);
    if (trick == Trick::kPipe) {
      ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0);
    }
  }
  Ending ctl(Arguments arguments) {
    arguments.insert(arguments.begin(), program("collectctl"));
    return run(scratch_.path(), arguments, {}, seconds(30));
  }
  static unsigned mode_of(const std::string& file) {
    struct stat st{};
    EXPECT_EQ(::lstat(file.c_str(), &st), 0) << file;
    return st.st_mode & 07777u;
  }

  Scratch scratch_;
  const std::string victim_ = scratch_ / "victim";
};

TEST_F(RedteamFiles, RecoverWritesIntoNoFileOfOthers) {
  int number = 0;
  for (const char* name :
       {"thread_0/index.atf", "thread_0/detail.atf", "thread_0/stream.journal", "manifest.json",
        "reserve.space", "manifest.json.new", "thread_0/detail.atf.new"}) {
    for (const Trick trick : kTricks) {
      const std::string directory = session("root" + std::to_string(++number));
      plant(directory + "/" + name, trick);
      const Ending ending = ctl({"recover", directory});
      SCOPED_TRACE(std::string(name) + ", trick " + std::to_string(int(trick)) + "\n" +
                   said_by(ending));
      EXPECT_FALSE(ending.timed_out);
      EXPECT_EQ(ending.signal, 0);
      ASSERT_EQ(read_text_file(victim_), kSecret);
      ASSERT_FALSE(filesystem::exists(scratch_ / "nowhere"));
      const bool is_temporary =
          std::string(name).ends_with(".new") || std::string(name) == "reserve.space";
      if (is_temporary) {
        // Of no use to a recovery: the name is removed, and what it names is not looked at.
        EXPECT_FALSE(filesystem::exists(filesystem::symlink_status(directory + "/" + name)));
        EXPECT_TRUE(ending.exited_with(0));
      } else {
        EXPECT_TRUE(names(ending, name)) << "it must say which file it refused";
        EXPECT_FALSE(ending.exited_with(0));
      }
    }
  }
}

TEST_F(RedteamFiles, RecoverGoesThroughNoLinkedDirectory) {
  const std::string directory = session("root");
  filesystem::remove_all(directory + "/thread_0");
  filesystem::create_directory_symlink(scratch_ / "elsewhere", directory + "/thread_0");
  const Ending ending = ctl({"recover", directory});
  EXPECT_TRUE(names(ending, "thread_0")) << said_by(ending);
  EXPECT_FALSE(ending.exited_with(0)) << said_by(ending);
  EXPECT_EQ(std::distance(filesystem::directory_iterator(scratch_ / "elsewhere"), {}), 1);
}

TEST_F(RedteamFiles, ReadersFollowNoLinkBelowTheirPath) {
  // The targets are whole and valid: a reader that followed the link would find nothing wrong.
  const std::string other = sealed_session("other");
  int number = 0;
  for (const char* name : {"thread_0/index.atf", "thread_0/detail.atf", "manifest.json"}) {
    for (const bool pipe : {false, true}) {
      const std::string directory = sealed_session("root" + std::to_string(++number));
      const std::string at = directory + "/" + name;
      if (pipe) {
        plant(at, Trick::kPipe);
      } else {
        filesystem::remove(at);
        filesystem::create_symlink(other + "/" + name, at);
      }
      for (const Arguments& command :
           {Arguments{"verify", directory}, Arguments{"inspect", directory},
            Arguments{"dump", directory}, Arguments{"report", directory},
            Arguments{"convert", directory, "--to", "rtc", "--force", "-o", scratch_ / "out.rtc"},
            Arguments{"convert", directory, "--to", "wtf", "--force", "-o", scratch_ / "out.wtf"},
            // One file of it, by name: what is beside it is not the user's word.
            Arguments{"verify", directory + "/thread_0"},
            Arguments{"verify", scratch_ / ("root" + std::to_string(number))}}) {
        const Ending ending = ctl(command);
        SCOPED_TRACE(command[0] + " " + command.back() + ": " + at + "\n" + said_by(ending));
        EXPECT_FALSE(ending.timed_out);
        EXPECT_EQ(ending.signal, 0);
        EXPECT_TRUE(names(ending, name));
        EXPECT_TRUE(names(ending, pipe ? "a named pipe" : "a link"));
        // `inspect` shows what there is; a thread and its events need no manifest.
        const bool goes_without = std::string(name) == "manifest.json" &&
                                  (command[0] == "dump" || command[0] == "report" ||
                                   command.back().ends_with("thread_0"));
        EXPECT_TRUE(command[0] == "inspect" || goes_without || !ending.exited_with(0));
      }
    }
  }
}

TEST_F(RedteamFiles, NamedFileMayBeALinkButNoPipe) {
  const std::string directory = sealed_session("root");
  filesystem::create_symlink(directory, scratch_ / "latest");
  const Ending followed = ctl({"verify", "--allow-incomplete", scratch_ / "latest"});
  EXPECT_TRUE(followed.exited_with(0)) << said_by(followed);
  filesystem::create_symlink(directory + "/thread_0/index.atf", scratch_ / "index.atf");
  const Ending one = ctl({"dump", scratch_ / "index.atf"});
  EXPECT_TRUE(one.exited_with(0)) << said_by(one);
  plant(scratch_ / "pipe.rtc", Trick::kPipe);
  for (const char* command : {"inspect", "verify", "dump", "recover"}) {
    const Ending ending = ctl({command, scratch_ / "pipe.rtc"});
    EXPECT_TRUE(ending.exited_with(2)) << command << said_by(ending);
    EXPECT_TRUE(names(ending, "pipe.rtc: not a file")) << command << said_by(ending);
  }
}

TEST_F(RedteamFiles, ContainersInADirectoryAreNoLinks) {
  const std::string directory = sealed_session("root");
  const std::string container = scratch_ / "whole.rtc";
  const Ending made = ctl({"convert", directory, "--to", "rtc", "-o", container});
  ASSERT_TRUE(made.exited_with(1)) << said_by(made);  // it was recovered
  for (const bool pipe : {false, true}) {
    const std::string folder = scratch_ / (pipe ? "pipes" : "links");
    filesystem::create_directory(folder);
    const std::string at = folder + "/capture-000001.rtc";
    if (pipe) {
      plant(at, Trick::kPipe);
    } else {
      filesystem::create_symlink(container, at);
    }
    const Ending ending = ctl({"convert", folder, "--to", "atf", "-o", scratch_ / "built"});
    EXPECT_TRUE(ending.exited_with(2)) << said_by(ending);
    EXPECT_TRUE(names(ending, "capture-000001.rtc")) << said_by(ending);
    EXPECT_FALSE(filesystem::exists(scratch_ / "built"));
  }
}

TEST_F(RedteamFiles, OutputReplacesALinkButNotItsTarget) {
  const std::string directory = sealed_session("root");
  filesystem::create_symlink(victim_, scratch_ / "out.rtc");
  const Ending refused = ctl({"convert", directory, "--to", "rtc", "-o", scratch_ / "out.rtc"});
  EXPECT_TRUE(refused.exited_with(2)) << said_by(refused);
  const Ending forced =
      ctl({"convert", directory, "--to", "rtc", "--force", "-o", scratch_ / "out.rtc"});
  EXPECT_TRUE(forced.exited_with(1)) << said_by(forced);  // made, of a recovered session
  EXPECT_FALSE(filesystem::is_symlink(scratch_ / "out.rtc"));
  plant(scratch_ / "pipe.rtc", Trick::kPipe);
  const Ending pipe =
      ctl({"convert", directory, "--to", "rtc", "--force", "-o", scratch_ / "pipe.rtc"});
  EXPECT_TRUE(pipe.exited_with(2)) << said_by(pipe);
  EXPECT_TRUE(names(pipe, "pipe.rtc")) << said_by(pipe);
}

TEST_F(RedteamFiles, LogOfTheEmbeddedDaemonIsNoLink) {
  for (const Trick trick : kTricks) {
    const std::string root = scratch_ / ("run" + std::to_string(int(trick)));
    filesystem::create_directory(root);
    plant(root + "/collectord.log", trick);
    const Ending ending = ctl({"run", "--control", "127.0.0.1:" + std::to_string(free_port()), "-o",
                               root, "--", "/bin/true"});
    EXPECT_FALSE(ending.timed_out);
    EXPECT_FALSE(ending.exited_with(0)) << said_by(ending);
    EXPECT_TRUE(names(ending, "collectord.log")) << said_by(ending);
  }
}

// ---- the daemon

class RedteamDaemonFiles : public RedteamFiles {
 protected:
  // A root with a session that is well and those of `spoilt`, by session name.
  std::string add(const std::string& name, const std::function<std::string()>& make) {
    const path made = make();
    filesystem::create_directories(scratch_ / "root");
    filesystem::rename(made.parent_path(), scratch_ / ("root/" + name));
    return scratch_ / ("root/" + name + "/" + made.filename().string());
  }
};

TEST_F(RedteamDaemonFiles, RecoveryAtTheStart) {
  struct Spoilt {
    std::string file;
    std::string directory;
  };
  std::vector<Spoilt> all;
  for (const char* file :
       {"thread_0/index.atf", "thread_0/detail.atf", "thread_0/stream.journal", "manifest.json",
        "manifest.json.new", "reserve.space", "thread_0/detail.atf.new"}) {
    for (const Trick trick : kTricks) {
      const std::string name = "session_20250101_0000" + std::to_string(10 + all.size());
      const std::string own = "own_" + name;
      const std::string directory = add(name, [&] { return session(own); });
      plant(directory + "/" + file, trick);
      all.push_back({name + "/" + path(directory).filename().string() + "/" + file, directory});
    }
  }
  const std::string well = add("session_20250101_000100", [&] { return session("own_well"); });
  // A link in the place of a session, and of a process of one: to a recording that is not below.
  const std::string other = session("other");
  const std::string before = read_text_file(other + "/manifest.json");
  filesystem::create_directory_symlink(path(other).parent_path(),
                                       scratch_ / "root/session_20250101_000200");
  filesystem::create_directory(scratch_ / "root/session_20250101_000300");
  filesystem::create_directory_symlink(
      other, scratch_ / "root/session_20250101_000300" / path(other).filename());

  CollectorProcess collector(scratch_, {"--resume-ms", "0"}, scratch_ / "root");
  ASSERT_TRUE(
      eventually(seconds(60), [&] { return RecordedSession(well).state() == "recovered"; }));
  const auto log_names = [&](const std::string& file) {
    return collector.process().errors().find(file) != std::string::npos ||
           collector.process().output().find(file) != std::string::npos;
  };
  EXPECT_TRUE(eventually(seconds(30), [&] { return log_names("session_20250101_000200"); }));
  EXPECT_TRUE(eventually(seconds(30), [&] { return log_names("session_20250101_000300"); }));
  for (const Spoilt& spoilt : all) {
    // In the log, or in the events of the session that was sealed without it.
    const bool is_temporary = spoilt.file.ends_with(".new") || spoilt.file.ends_with(".space");
    if (is_temporary) continue;
    EXPECT_TRUE(eventually(seconds(30), [&] {
      return log_names(spoilt.file) ||
             read_text_file(spoilt.directory + "/manifest.json")
                     .find(path(spoilt.file).filename()) != std::string::npos;
    })) << spoilt.file;
  }
  EXPECT_EQ(read_text_file(other + "/manifest.json"), before);
  EXPECT_TRUE(filesystem::exists(other + "/reserve.space"));
  const Ending listed = collector.ctl({"sessions"});
  EXPECT_EQ(listed.output.find("000200"), std::string::npos) << listed.output;
  EXPECT_TRUE(collector.process().running());
}

TEST_F(RedteamDaemonFiles, DownloadFileAndDeleteSession) {
  const std::string directory =
      add("session_20250101_000000", [&] { return sealed_session("own"); });
  const std::string name = "session_20250101_000000/" + path(directory).filename().string();
  CollectorProcess collector(scratch_, {}, scratch_ / "root");
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"sessions"}).output.find("20250101_000000") != std::string::npos;
  }));
  filesystem::create_symlink(victim_, directory + "/stream.dial9");
  filesystem::create_directory_symlink(scratch_ / "elsewhere", directory + "/thread_1");
  filesystem::remove(directory + "/thread_0/detail.atf");
  plant(directory + "/thread_0/detail.atf", Trick::kPipe);
  const Ending files = collector.ctl({"inspect", "--at-collector", "--files", name});
  EXPECT_TRUE(files.exited_with(0)) << said_by(files);
  EXPECT_EQ(files.output.find("dial9"), std::string::npos) << files.output;
  EXPECT_EQ(files.output.find("thread_1"), std::string::npos) << files.output;
  for (const char* file : {"stream.dial9", "thread_1/index.atf", "thread_0/detail.atf"}) {
    // Asked for past the list, as any client of the API can.
    const Ending got = collector.ctl({"download", name, file, "-o", scratch_ / "copy"});
    EXPECT_FALSE(got.exited_with(0)) << said_by(got);
    EXPECT_TRUE(names(got, file)) << said_by(got);
    EXPECT_EQ(read_text_file(scratch_ / (std::string("copy/") + file)).find(kSecret),
              std::string::npos);
  }
  const Ending removed = collector.ctl({"delete", name});
  EXPECT_FALSE(removed.exited_with(0)) << said_by(removed);
  EXPECT_TRUE(names(removed, "thread_1")) << said_by(removed);
  EXPECT_TRUE(filesystem::exists(scratch_ / "elsewhere/index.atf"));
  // The link that stood for a file is gone, and its target is not.
  EXPECT_FALSE(filesystem::is_symlink(directory + "/stream.dial9"));
  filesystem::remove(directory + "/thread_1");
  EXPECT_TRUE(collector.ctl({"delete", name}).exited_with(0));
}

TEST_F(RedteamDaemonFiles, DownloadsAreWrittenThroughNoLink) {
  const std::string directory =
      add("session_20250101_000000", [&] { return sealed_session("own"); });
  const std::string pid = path(directory).filename().string();
  CollectorProcess collector(scratch_, {}, scratch_ / "root");
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"sessions"}).output.find("20250101_000000") != std::string::npos;
  }));
  const std::string name = "session_20250101_000000/" + pid;
  for (const Trick trick : kTricks) {
    const std::string copy = scratch_ / ("copy" + std::to_string(int(trick)));
    filesystem::create_directories(copy);
    plant(copy + "/manifest.json.part", trick);
    const Ending ending = collector.ctl({"download", name, "-o", copy});
    EXPECT_FALSE(ending.exited_with(0)) << said_by(ending);
    EXPECT_TRUE(names(ending, "manifest.json.part")) << said_by(ending);
  }
  const std::string linked = scratch_ / "linked";
  filesystem::create_directories(linked);
  filesystem::create_directory_symlink(scratch_ / "elsewhere", linked + "/thread_0");
  const Ending through = collector.ctl({"download", name, "-o", linked});
  EXPECT_FALSE(through.exited_with(0)) << said_by(through);
  EXPECT_TRUE(names(through, "thread_0")) << said_by(through);
  EXPECT_EQ(std::distance(filesystem::directory_iterator(scratch_ / "elsewhere"), {}), 1);
  // The directory itself is the user's word.
  filesystem::create_directory(scratch_ / "real");
  filesystem::create_directory_symlink(scratch_ / "real", scratch_ / "own_link");
  const Ending whole = collector.ctl({"download", name, "-o", scratch_ / "own_link"});
  EXPECT_TRUE(whole.exited_with(0)) << said_by(whole);
  EXPECT_TRUE(filesystem::exists(scratch_ / "real/thread_0/index.atf"));
  EXPECT_EQ(mode_of(scratch_ / "real/thread_0"), 0700u);
  EXPECT_EQ(mode_of(scratch_ / "real/thread_0/index.atf"), 0600u);
  // Without one, what the collector names is below the working directory.
  const std::string here = scratch_ / "here";
  filesystem::create_directory(here);
  filesystem::create_directory_symlink(scratch_ / "elsewhere", here + "/session_20250101_000000");
  const Ending named =
      run(scratch_.path(), {"/bin/sh", "-c",
                            "cd " + here + " && exec " + program("collectctl") + " --control " +
                                collector.control() + " download " + name});
  EXPECT_FALSE(named.exited_with(0)) << said_by(named);
  EXPECT_TRUE(names(named, "session_20250101_000000")) << said_by(named);
  EXPECT_EQ(std::distance(filesystem::directory_iterator(scratch_ / "elsewhere"), {}), 1);
}

// Stack bytes are secrets: what is recorded is for its owner, unless the root lets its group in and
// no one else.
TEST_F(RedteamDaemonFiles, OtherUsersCanNotReadWhatIsRecorded) {
  struct Case {
    unsigned root, directory, file;
  };
  for (const Case& expected : {Case{0755, 0700, 0600}, Case{0750, 0750, 0640}}) {
    const std::string root = scratch_ / ("modes" + std::to_string(expected.root));
    filesystem::create_directory(root);
    filesystem::permissions(root, filesystem::perms(expected.root));
    CollectorProcess collector(scratch_, {}, root);
    ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "1", "1"},
                     collector.tracing());
    ASSERT_TRUE(job.wait(seconds(60)).exited_with(0));
    const std::vector<RecordedSession> sessions = sealed_sessions(root, job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    const path directory = sessions[0].directory();
    EXPECT_EQ(mode_of(directory.parent_path()), expected.directory);
    EXPECT_EQ(mode_of(directory), expected.directory);
    for (const auto& entry : filesystem::recursive_directory_iterator(directory)) {
      EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? expected.directory : expected.file)
          << entry.path();
    }
  }
}

}  // namespace
}  // namespace collect::e2e
