// What collectctl says on a terminal, and the words of `run`, `android` and `ios`. expected/ has a
// text for each test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "daemon/control/control_server.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/words/command_words.h"
#include "tests/daemon/ctl/words/inputs.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

// ---- on a terminal

// Of what is written to it all is kept, as it is.
class FakeTerminal {
 public:
  // Without columns it does not say how wide it is.
  explicit FakeTerminal(unsigned short columns = 0) {
    int ours = -1;
    const winsize size{24, columns, 0, 0};
    EXPECT_EQ(::openpty(&ours, &descriptor_, nullptr, nullptr, &size), 0);
    termios raw{};
    ::tcgetattr(descriptor_, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(descriptor_, TCSANOW, &raw);
    ::fcntl(ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
    reader_ = std::thread([this, ours] {
      char buffer[4096];
      for (ssize_t got; (got = ::read(ours, buffer, sizeof buffer)) > 0;) {
        text_.append(buffer, static_cast<size_t>(got));
      }
      ::close(ours);
    });
  }
  ~FakeTerminal() { (void)text(); }

  int descriptor() const { return descriptor_; }
  // When nothing more is written.
  std::string text() {
    if (reader_.joinable()) {
      ::close(descriptor_);
      reader_.join();
    }
    return text_;
  }

 private:
  int descriptor_ = -1;
  std::thread reader_;
  std::string text_;
};

class TerminalWords : public CommandWords {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    root_ = runner_.directory();
    const auto session = testing::small_session(root_ / "s", atf::Version::kV2);
    fs::create_directory_symlink(session, root_ / "session");
    fs::create_directory_symlink(testing::other_session(root_ / "o"), root_ / "other");
    reference::write_file(root_ / "x.bin", testing::dial9_of_everything());
    text_.show_as(root_.string(), "DIR");
    text_.show_as("\x1b", "<ESC>");
    text_.show_as("\r", "<CR>");
  }
  // Standard output or standard error is a terminal.
  void see(const Arguments& arguments, unsigned short columns = 0) {
    FakeTerminal terminal(columns);
    runner_.output = terminal.descriptor();
    const Ran ran = runner_.run(arguments);
    runner_.output = -1;
    text_.add(joined(arguments), terminal.text(), ran.err, ran.exit_code);
  }
  void see_errors(const Arguments& arguments) {
    FakeTerminal terminal;
    runner_.errors = terminal.descriptor();
    const Ran ran = runner_.run(arguments);
    runner_.errors = -1;
    text_.add(joined(arguments), ran.out, terminal.text(), ran.exit_code);
  }

  fs::path root_;
};

TEST_F(TerminalWords, TablesAreAsWideAsTheTerminal) {
  for (const unsigned short columns : std::vector<unsigned short>{0, 200, 72, 20}) {
    see({"report", "--color", "never", "session"}, columns);
    see({"report", "--by", "caller", "--color", "never", "session"}, columns);
    see({"report", "--graph", "draw", "--color", "never", "session"}, columns);
    see({"sessions", root_.string()}, columns);
  }
  text_.expect("terminal_columns");
}

TEST_F(TerminalWords, ColoursGoByTheirOptionAndTheEnvironment) {
  const auto is_colored = [this](const Arguments& more) {
    Arguments arguments = {"report", "session"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    FakeTerminal terminal;
    runner_.output = terminal.descriptor();
    EXPECT_EQ(runner_.run(arguments).exit_code, 0);
    runner_.output = -1;
    return terminal.text().find("\x1b[1m") != std::string::npos;
  };
  EXPECT_TRUE(is_colored({}));
  EXPECT_TRUE(is_colored({"--color", "auto"}));
  EXPECT_FALSE(is_colored({"--color", "never"}));
  runner_.environment["TERM"] = "dumb";
  EXPECT_FALSE(is_colored({}));
  EXPECT_TRUE(is_colored({"--color=always"}));
  runner_.environment["TERM"] = "xterm";
  EXPECT_TRUE(is_colored({}));
  runner_.environment["NO_COLOR"] = "1";
  EXPECT_FALSE(is_colored({}));
  EXPECT_TRUE(is_colored({"--color", "always"}));
  EXPECT_FALSE(is_colored({"--color", "always", "--json"}));
}

TEST_F(TerminalWords, ColoursAreForPeople) {
  const std::vector<Arguments> lines = {
      {"inspect", "session"},
      {"inspect", "x.bin"},
      {"verify", "--allow-incomplete", "session"},
      {"verify", "x.bin"},
      {"report", "session"},
      {"report", "--graph", "draw", "session"},
      {"report", "session", "--diff", "other"},
      {"dump", "--limit", "2", "session"},
  };
  for (Arguments line : lines) {
    see(line);
    line.emplace_back("--json");
    see(line);
  }
  runner_.environment["NO_COLOR"] = "1";
  for (const Arguments& line : lines) see(line);
  text_.expect("terminal");
}

TEST_F(TerminalWords, HowFarItIsIsForPeople) {
  see_errors({"verify", "--allow-incomplete", "session"});
  see_errors({"inspect", "session"});
  see_errors({"recover", "x.bin", "-o", "y.bin"});
  see_errors({"convert", "x.bin", "--to", "dial9", "-o", "z.bin"});
  run({"verify", "--allow-incomplete", "session"});
  run({"recover", "x.bin", "-o", "w.bin"});
  text_.expect("terminal_progress");
}

// ---- run

class RunWords : public CommandWords {
 protected:
  RunWords() {
    runner_.environment = {{"COLLECT_COLLECTORD", FAKE_COLLECTORD_PROGRAM},
                           {"COLLECT_AGENT_LIBRARY", FAKE_AGENT_LIBRARY},
                           {"FAKE_COLLECTORD", "session"},
                           {"FAKE_EVENTS", "1234567"},
                           {"LD_PRELOAD", ""}};
    text_.show_as(runner_.directory().string(), "DIR");
    text_.show_as(FAKE_AGENT_LIBRARY, "AGENT");
    text_.show_as(FAKE_COLLECTORD_PROGRAM, "COLLECTORD");
  }
  // Ports and tags are others each time.
  int see(const Arguments& arguments) {
    const Ran ran = runner_.run(arguments);
    text_.add(joined(arguments), plain(ran.out), plain(ran.err), ran.exit_code);
    return ran.exit_code;
  }
  static std::string plain(const std::string& text) {
    const std::string address =
        std::regex_replace(text, std::regex("127\\.0\\.0\\.1:[0-9]{4,}"), "127.0.0.1:PORT");
    return std::regex_replace(address, std::regex("run-[0-9a-f]{16}"), "run-TAG");
  }
};

TEST_F(RunWords, RunOutputMatchesCommittedText) {
  EXPECT_EQ(see({"run", "-o", "traces", "--", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "--json", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "-q", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "--idle", "--no-follow", "sh", "-c", "exit 3"}), 3);
  runner_.environment["FAKE_LOST"] = "42";
  EXPECT_EQ(see({"run", "-o", "traces", "--when-full=drop", "--drain=thread", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "--json", "--only", "a*", "true"}), 0);
  runner_.environment["FAKE_EVENTS"] = "0";
  EXPECT_EQ(see({"run", "-o", "traces", "--only", "a*", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "--max-time", "1s", "true"}), 0);
  EXPECT_EQ(see({"run", "-o", "traces", "-q", "--except", "b", "true"}), 0);
  runner_.environment["FAKE_COLLECTORD"] = "agent";
  EXPECT_EQ(see({"run", "-o", "traces", "--idle", "true"}), 0);
  runner_.environment["FAKE_COLLECTORD"] = "failed";
  runner_.environment["FAKE_EVENTS"] = "7";
  EXPECT_EQ(see({"run", "-o", "traces", "true"}), 125);
  EXPECT_EQ(see({"run", "-o", "traces", "-q", "sh", "-c", "exit 3"}), 3);
  runner_.environment["FAKE_COLLECTORD"] = "refuse";
  EXPECT_EQ(see({"run", "-o", "traces", "true"}), 125);
  EXPECT_EQ(see({"run", "-o", "traces", "none"}), 127);
  std::ofstream(runner_.directory() / "data") << "no program";
  EXPECT_EQ(see({"run", "-o", "traces", "./data"}), 126);
  runner_.environment["FAKE_COLLECTORD"] = "session";
  EXPECT_EQ(see({"run", "-o", "traces", "--only", "a;b", "true"}), 125);
  EXPECT_EQ(see({"run", "-o", "traces", "--except", std::string(4096, 'x'), "true"}), 125);
  std::ofstream(runner_.directory() / "file") << "";
  EXPECT_EQ(see({"run", "-o", "file/below", "true"}), 125);
  EXPECT_EQ(see({"run", "--control", "127.0.0.1:1", "true"}), 125);
  runner_.environment["COLLECT_CONTROL"] = "127.0.0.1:1";
  EXPECT_EQ(see({"run", "true"}), 125);
  runner_.environment["COLLECT_COLLECTORD"] = "/none/collectord";
  EXPECT_EQ(see({"run", "-o", "traces", "true"}), 125);
  runner_.environment["COLLECT_AGENT_LIBRARY"] = "/none/agent.so";
  EXPECT_EQ(see({"run", "-o", "traces", "true"}), 125);
  text_.expect("run");
}

// What the program is started with: of our settings, and of the caller's.
TEST_F(RunWords, ProgramEnvironmentMatchesCommittedText) {
  const std::string print =
      "env | grep -e ^COLLECT_ -e ^LD_PRELOAD | grep -v -e _COLLECTORD= -e _LIBRARY= | sort |"
      " sed -e 's/@[1-9][0-9]*/@NOW/' -e \"s/_OF=$PPID/_OF=PARENT/\" -e 's/_RUN=.*/_RUN=DIR/'"
      " -e 's/_RUN_KEY=.*/_RUN_KEY=KEY/'; echo \"$@\"";
  const auto get = [&](Arguments options) {
    options.insert(options.begin(), {"run", "-q", "-o", "traces"});
    options.insert(options.end(), {"--", "sh", "-c", print, "sh", "--json", "-o", "x", "--"});
    EXPECT_EQ(see(options), 0);
  };
  get({});
  get({"--when-full",
       "overwrite",
       "--drain",
       "thread",
       "--detail",
       "armed",
       "--buffer",
       "16384",
       "--only",
       "a*",
       "--only",
       "b",
       "--except",
       "c",
       "--except",
       "d*",
       "--max-depth",
       "1000000",
       "--max-rate",
       "1000000000",
       "--longer-than",
       "1h",
       "--max-time",
       "24000h",
       "--max-size",
       "2G",
       "--idle",
       "--atf-version",
       "1",
       "--no-follow"});
  get({"--full=drop", "--detail=on", "--buffer=1", "--max-depth=1", "--longer-than=1ns",
       "--max-time=1ns", "--max-size=1", "--atf-version=2"});
  runner_.environment["COLLECT_FULL"] = "drop";
  runner_.environment["COLLECT_DRAIN"] = "thread";
  runner_.environment["COLLECT_DETAIL"] = "on";
  runner_.environment["COLLECT_CONNECT"] = "elsewhere:1";
  runner_.environment["COLLECT_LISTEN"] = "tcp:1";
  runner_.environment["COLLECT_MAX_TIME"] = "7s";
  runner_.environment["LD_PRELOAD"] = "libm.so.6";
  get({});
  runner_.environment["COLLECT_CHILD_OF"] = "1";
  get({});
  text_.expect("run_environment");
}

// Which word is the program's.
TEST_F(RunWords, WhereTheProgramBegins) {
  see({"run", "-q", "-otraces", "echo", "a", "--", "b"});
  see({"run", "-q", "-o", "traces", "--buffer=8", "printf", "%s\n", "--help", "-V"});
  see({"run", "--output", "traces", "--quiet", "--", "echo", "-h"});
  see({"--json", "run", "-o", "traces", "sh", "-c", "exit 5"});
  see({"--control", "127.0.0.1:1", "run", "echo", "x"});
  see({"--control=127.0.0.1:1", "run", "echo", "x"});
  see({"run", "-q", "-o", "traces", "--tls-ca", "x", "echo", "y"});
  see({"run", "-o"});
  see({"run", "-o", "traces", "--help"});
  text_.expect("run_program");
}

// ---- phones

TEST_F(RunWords, WithoutPhones) {
  runner_.environment["ADB_SERVER_SOCKET"] = "tcp:127.0.0.1:1";
  runner_.environment["USBMUXD_SOCKET_ADDRESS"] = "127.0.0.1:1";
  for (const Arguments& line :
       {Arguments{"android", "run", "com.example.app", ".Main"},
        {"android", "run", "-s", "X", "--when-full", "wait", "com.example.app"},
        {"android", "attach", "com.example.app"},
        {"android", "attach", "--json", "com.example.app"},
        {"android", "undo", "com.example.app"},
        {"ios", "run", "UDID", "com.example.app"},
        {"ios", "run", "-o", "traces", "UDID", "com.example.app"},
        {"ios", "attach"},
        {"ios", "attach", "--udid", "X", "--port", "65535"}}) {
    EXPECT_NE(see(line), 0) << joined(line);
  }
  text_.expect("phones");
}

}  // namespace
}  // namespace collect::ctl
