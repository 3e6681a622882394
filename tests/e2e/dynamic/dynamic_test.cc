// Programs of Debian, as they are: `collectctl run --dynamic` records them, and they do what they
// do without it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "daemon/patch/plan_maker.h"
#include "daemon/patch/plan_store.h"
#include "formats/core/crc32.h"
#include "formats/patch/plan_view.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kLua[] = "/usr/bin/lua5.4";

constexpr char kLuaScript[] = R"(
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = {}
for i = 1, 2000 do t[i] = (i * 7919) % 1009 end
table.sort(t)
local words = {}
for w in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = w:upper() end
local made = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i * i) end end)
local sum = 0
for i = 1, 100 do sum = sum + made() end
local failed, why = pcall(function() error({code = 42}) end)
print(fib(15), t[1], t[2000], table.concat(words, "-"), sum, failed, why.code, string.format("%5.2f|%q", 3.14159, "a\nb"))
os.exit(7)
)";

constexpr char kSql[] = R"(
create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
  insert into t select i, 'name' || (i * 7919 % 1009), i / 7.0 from n;
create index t_name on t(name);
select count(*), sum(value), max(name) from t where name like 'name1%';
select json_group_array(json_object('id', id)) from (select id from t order by value desc limit 5);
select * from missing;
)";

constexpr char kPerl[] = R"(
my %seen; $seen{$_ * 7919 % 1009}++ for 1 .. 3000;
my $text = join(",", sort { $a <=> $b } keys %seen);
(my $other = $text) =~ s/(\d+),(\d+)/$2;$1/g;
my $ok = eval { die { code => 42 } ; 1 };
printf("%d %s %s %s\n", length($other), substr($other, 0, 40), defined $ok ? "ok" : "died", $@->{code});
sub deep { my $n = shift; return $n == 0 ? 0 : 1 + deep($n - 1) } print deep(80), "\n";
exit 3;
)";

// The compiler's driver is linked at a fixed address.
constexpr char kSource[] = R"(
int choose(int n) { switch (n) { case 1: return 4; case 2: return 9; case 3: return 1; } return n; }
)";

constexpr char kBash[] = R"(
f() { local n=$1; if ((n < 2)); then echo "$n"; else echo $(( $(f $((n-1))) + $(f $((n-2))) )); fi; }
f 6
declare -A map; for i in {1..300}; do map[k$((i * 7919 % 101))]=$i; done
echo "${#map[@]} ${map[k3]}"
for w in alpha beta gamma; do case $w in b*) echo "${w^^}";; *) echo "${w//a/_}";; esac; done
trap 'echo bye' EXIT
printf '%s\n' {a..e}{1..3} | sort -r | head -3
exit 5
)";

struct Program {
  const char* name;
  const char* option;  // which modules
  Arguments command;
  std::string script;  // written to a file, whose path is added to the last argument
  int exit_code;
};

void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

class DynamicTest : public ::testing::TestWithParam<Program> {
 protected:
  void SetUp() override { fs::create_directory(scratch_ / "cache"); }

  Ending record(const Arguments& options, const Arguments& command, const Environment& more = {}) {
    Arguments line{program("collectctl"), "run", "-o", scratch_ / "traces"};
    line.insert(line.end(), options.begin(), options.end());
    line.emplace_back("--");
    line.insert(line.end(), command.begin(), command.end());
    Environment environment{{"XDG_CACHE_HOME", scratch_ / "cache"}};
    environment.insert(more.begin(), more.end());
    return run(scratch_.path(), line, environment);
  }
  std::vector<RecordedSession> sessions() {
    std::vector<RecordedSession> all;
    for (const std::string& directory : session_directories(scratch_ / "traces")) {
      all.emplace_back(directory);
      EXPECT_EQ(all.back().state(), "complete");
      EXPECT_EQ(all.back().totals().lost, 0u);
    }
    return all;
  }
  Ending ctl(Arguments arguments) {
    arguments.insert(arguments.begin(), program("collectctl"));
    return run(scratch_.path(), arguments);
  }
  std::string lua_script(const std::string& text) {
    write_text_file(scratch_ / "script.lua", text);
    return scratch_ / "script.lua";
  }

  Scratch scratch_;
};

struct Counts {
  uint64_t calls = 0;
  uint64_t returns = 0;
  uint64_t exceptions = 0;
};

Counts count(const RecordedSession& session) {
  Counts counts;
  for (uint32_t n = 0; n < session.totals().threads; ++n) {
    session.for_each_event(n, [&](const RecordedSession::StoredEvent& event) {
      if (!event.is_return) {
        ++counts.calls;
      } else if (event.is_exception) {
        ++counts.exceptions;
      } else {
        ++counts.returns;
      }
    });
  }
  return counts;
}

// collectctl says what it waits for where a busy machine takes its time.
std::string without_waiting(const std::string& errors) {
  std::istringstream lines(errors);
  std::string others;
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with("; Ctrl-C stops waiting")) others += line + "\n";
  }
  return others;
}

TEST_P(DynamicTest, DoesWhatItDoesUntraced) {
  const Program& one = GetParam();
  Arguments command = one.command;
  if (!one.script.empty()) {
    write_text_file(scratch_ / "script", one.script);
    command.back() += scratch_ / "script";
  }
  const Ending bare = run(scratch_.path(), command);
  ASSERT_TRUE(bare.exited_with(one.exit_code)) << bare.describe() << bare.errors;
  const Ending traced = record({one.option, "--quiet"}, command);
  EXPECT_TRUE(traced.exited_with(one.exit_code)) << traced.describe() << traced.errors;
  EXPECT_EQ(traced.output, bare.output);
  EXPECT_EQ(without_waiting(traced.errors), bare.errors);
  const auto recorded = sessions();
  ASSERT_FALSE(recorded.empty());
  uint64_t calls = 0;
  for (const RecordedSession& session : recorded) {
    const Counts counts = count(session);
    calls += counts.calls;
    const Ending verified = ctl({"verify", session.directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output;
  }
  EXPECT_GT(calls, 1000u);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, DynamicTest,
    ::testing::Values(
        Program{"lua", "--dynamic", {kLua, ""}, kLuaScript, 7},
        Program{"sqlite3", "--dynamic=*", {"/usr/bin/sqlite3", ":memory:", ".read "}, kSql, 1},
        Program{"perl", "--dynamic", {"/usr/bin/perl", ""}, kPerl, 3},
        Program{"bash", "--dynamic", {"/usr/bin/bash", "--norc", ""}, kBash, 5},
        Program{"gcc", "--dynamic", {"/usr/bin/gcc", "-fsyntax-only", "-x", "c", ""}, kSource, 0},
        Program{"git", "--dynamic=*", {"/usr/bin/git", "help", "-a"}, "", 0}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_F(DynamicTest, EveryCallReturnsAndExportedFunctionsHaveNames) {
  // Ends by itself: nothing is left by longjmp or exit but main's end.
  const std::string script = lua_script(
      "local s = 0 for i = 1, 20000 do s = s + #tostring(i) end print(s, (\"x\"):rep(3))");
  const Ending traced = record({"--dynamic"}, {kLua, script});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_NE(traced.errors.find("functions of /usr/bin/lua5.4"), std::string::npos) << traced.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  const Counts counts = count(recorded[0]);
  EXPECT_GT(counts.calls, 100'000u);
  EXPECT_EQ(counts.returns, counts.calls);
  EXPECT_EQ(counts.exceptions, 0u);
  const Ending report = ctl({"report", "--json", "--limit", "1000", recorded[0].directory()});
  ASSERT_TRUE(report.exited_with(0)) << report.errors;
  std::map<std::string, uint64_t> calls;
  const json document = json::parse(report.output);
  for (const json& row : document.at("functions")) {
    calls[row.at("name").get<std::string>()] = row.at("calls").get<uint64_t>();
  }
  // Each tostring() checks its argument once, and print() converts its own, too. Both functions are
  // exported, so the file has their names.
  EXPECT_EQ(calls["luaL_checkany"], 20'000u) << report.output.substr(0, 2000);
  EXPECT_EQ(calls["luaL_tolstring"], 20'002u);
}

// Places that compilers leave for other tracers are room for ours, and no obstacle: no more
// functions are left out because of their beginnings than of the same program without them. Whether
// an exit has room depends on the padding behind it, which the places change.
TEST_F(DynamicTest, RecordsBuildsForOtherTracersAsWell) {
  const auto refused_entries = [&](const std::string& name) {
    const Ending planned = ctl({"list", "--plan", "--json", traced_program(name)});
    EXPECT_TRUE(planned.exited_with(0)) << name << planned.output << planned.errors;
    const json plan = json::parse(planned.output);
    EXPECT_GT(plan["recorded"], 10) << name;
    uint64_t refused = 0;
    for (const json& one : plan["reasons"]) {
      if (one["reason"] != "no room for a jump where it returns") {
        refused += one["functions"].get<uint64_t>();
      }
    }
    return refused;
  };
  for (const auto& [plain, others] : std::map<std::string, std::vector<std::string>>{
           {"unprepared", {"unprepared_patchable", "unprepared_before"}},
           {"unprepared_fixed", {"unprepared_mcount"}},
           {"unprepared_clang", {"unprepared_clang_patchable", "unprepared_clang_xray"}}}) {
    if (!fs::exists(traced_program(plain))) continue;
    for (const std::string& other : others) {
      if (!fs::exists(traced_program(other))) continue;
      EXPECT_LE(refused_entries(other), refused_entries(plain)) << other;
    }
  }
}

// Its plan is known by its file, and so are its names.
TEST_F(DynamicTest, ProgramWithoutABuildIdHasNames) {
  const std::string program_path = scratch_ / "nameless";
  write_text_file(scratch_ / "nameless.c", R"(
#include <stdio.h>
__attribute__((noinline)) int twice(int n) { return 3 * printf("%d\n", 2 * n) + 1000 * n + 77; }
int main(void) { int s = 0; for (int i = 0; i < 100; ++i) s += twice(i); return s == 0; }
)");
  const Ending built = run(scratch_.path(), {"/usr/bin/gcc", "-O2", "-Wl,--build-id=none", "-o",
                                             program_path, scratch_ / "nameless.c"});
  ASSERT_TRUE(built.exited_with(0)) << built.errors;
  for (int round = 0; round < 2; ++round) {  // the second one with a plan that was kept
    const Ending traced = record({"--dynamic", "--quiet"}, {program_path});
    ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  }
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 2u);
  for (const RecordedSession& session : recorded) {
    const Counts counts = count(session);
    EXPECT_EQ(counts.calls, counts.returns);
    const Ending report = ctl({"report", "--json", session.directory()});
    std::map<std::string, uint64_t> calls;
    const json document = json::parse(report.output);
    for (const json& row : document.at("functions")) {
      calls[row.at("name").get<std::string>()] = row.at("calls").get<uint64_t>();
    }
    EXPECT_EQ(calls["twice"], 100u) << report.output;
    EXPECT_EQ(calls["main"], 1u) << report.output;
  }
}

// The same loop for two seconds, with a call of another kind at its end.
TEST_F(DynamicTest, HotFunctionsAreSwitchedOffAndNamed) {
  const std::string script = lua_script(
      "local s, n, from = string.byte, 0, os.clock()\n"
      "while os.clock() - from < 2 do for i = 1, 1000 do n = n + s('a') end end\n"
      "print(n > 0, (\"x\"):rep(3), tostring({}) ~= nil)");
  const Ending traced =
      record({"--dynamic", "--drain", "thread", "--max-rate", "100000"}, {kLua, script});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_EQ(traced.output, "true\txxx\ttrue\n");
  EXPECT_NE(traced.errors.find(" as --max-rate asks; calls from then on are missing:\n"),
            std::string::npos)
      << traced.errors;
  EXPECT_TRUE(std::regex_search(traced.errors, std::regex(R"(lua\w+ \([\d,]+ calls/s\))")))
      << traced.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  std::map<uint64_t, uint64_t> off;
  for (const json& one : recorded[0].manifest()["function_filters"][0]["switched_off"]) {
    off[std::stoull(one["function_id"].get<std::string>(), nullptr, 16)] = one["at_ns"];
  }
  uint64_t late_calls = 0;
  uint64_t ends = 0;  // of calls that are not hot, by then
  recorded[0].for_each_event(0, [&](const RecordedSession::StoredEvent& event) {
    const auto found = off.find(event.function_id);
    if (found == off.end()) ++ends;
    if (found == off.end() || event.is_return) return;
    late_calls += event.timestamp_ns > found->second ? 1 : 0;
  });
  EXPECT_EQ(late_calls, 0u);
  EXPECT_GT(ends, 0u);
}

// Exceptions through patched frames, longjmp, threads; the program checks its own results. Patched
// are its own functions, and those of the C++ library, too.
TEST_F(DynamicTest, ExceptionsJumpsAndThreads) {
  constexpr uint64_t kRounds = 200;
  constexpr uint64_t kThreads = 7;
  for (const char* name :
       {"unprepared", "unprepared_fixed", "unprepared_nameless", "unprepared_patchable",
        "unprepared_before", "unprepared_mcount", "unprepared_clang", "unprepared_clang_patchable",
        "unprepared_clang_xray"}) {
    if (!fs::exists(traced_program(name))) continue;  // there is no such compiler here
    for (const char* option : {"--dynamic", "--dynamic=*"}) {
      SCOPED_TRACE(std::string(name) + " " + option);
      const Arguments command{traced_program(name), std::to_string(kRounds)};
      const Ending bare = run(scratch_.path(), command);
      ASSERT_TRUE(bare.exited_with(0)) << bare.output;
      const Ending traced = record({option, "--quiet"}, command);
      ASSERT_TRUE(traced.exited_with(0)) << traced.output << traced.errors;
      EXPECT_EQ(traced.output, bare.output);
      const auto recorded = sessions();
      ASSERT_EQ(recorded.size(), 1u);
      const Counts counts = count(recorded[0]);
      EXPECT_EQ(recorded[0].totals().threads, kThreads);
      EXPECT_GT(counts.exceptions, kRounds * kThreads);
      // Nothing ends twice. No one sees the end of what longjmp leaves: seven frames a round, if
      // the compiler made no loop of them.
      const uint64_t ends = counts.returns + counts.exceptions;
      EXPECT_LE(ends, counts.calls);
      EXPECT_LE(counts.calls - ends, 7 * kRounds * kThreads);
      fs::remove_all(scratch_ / "traces");
    }
  }
}

TEST_F(DynamicTest, FiltersHoldForIt) {
  const std::string script = lua_script("for i = 1, 500 do tostring(i) end");
  const Ending traced =
      record({"--dynamic", "--quiet", "--only", "luaL_tolstring"}, {kLua, script});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(count(recorded[0]).calls, 500u);
  EXPECT_EQ(count(recorded[0]).returns, 500u);
}

TEST_F(DynamicTest, DetailHasArguments) {
  const std::string script = lua_script("for i = 1, 50 do tostring(i) end");
  const Ending traced = record(
      {"--dynamic", "--quiet", "--detail", "on", "--only", "luaL_tolstring"}, {kLua, script});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].totals().detail_records, 100u);
}

TEST_F(DynamicTest, ScriptsAreTracedByTheirInterpreter) {
  const std::string script = lua_script("#!/usr/bin/env lua5.4\nprint(#tostring(12))\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const Ending traced = record({"--dynamic"}, {script});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_EQ(traced.output, "2\n");
  EXPECT_NE(traced.errors.find("/usr/bin/lua5.4"), std::string::npos) << traced.errors;
  bool is_recorded = false;
  for (const RecordedSession& session : sessions()) {
    is_recorded = is_recorded || session.totals().events > 1000;
  }
  EXPECT_TRUE(is_recorded);
}

TEST_F(DynamicTest, LibrariesByPattern) {
  const Ending traced =
      record({"--dynamic=libsqlite3*"}, {"/usr/bin/sqlite3", ":memory:", "select 6 * 7;"});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_EQ(traced.output, "42\n");
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  const Ending report = ctl({"report", "--json", recorded[0].directory()});
  EXPECT_NE(report.output.find("sqlite3_prepare"), std::string::npos) << report.errors;
  EXPECT_EQ(report.output.find("\"module_id\":0,"), std::string::npos);
}

// $ORIGIN of a program is the folder of its file, wherever a link to it is.
TEST_F(DynamicTest, LinkToAProgramWithItsLibraryBesideIt) {
  const std::string link = scratch_ / "linked";
  std::filesystem::create_symlink(traced_program("early_plain"), link);
  const Ending traced = record({"--dynamic=*"}, {link});
  ASSERT_TRUE(traced.exited_with(0)) << traced.describe() << traced.errors;
  EXPECT_EQ(traced.output, "early_work 100, library_work 100, 7\n");
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  const Ending report = ctl({"report", "--json", recorded[0].directory()});
  EXPECT_NE(report.output.find("library_work"), std::string::npos) << report.output;
}

TEST_F(DynamicTest, LibrariesThatWereNotAskedForAreNamed) {
  const Ending alone = record({"--dynamic"}, {"/usr/bin/sqlite3", ":memory:", "select 6 * 7;"});
  ASSERT_TRUE(alone.exited_with(0)) << alone.errors;
  EXPECT_NE(alone.errors.find("the program alone; --dynamic='*' also records "), std::string::npos)
      << alone.errors;
  EXPECT_NE(alone.errors.find("libsqlite3.so.0"), std::string::npos) << alone.errors;
  const Ending all = record({"--dynamic=*"}, {"/usr/bin/sqlite3", ":memory:", "select 6 * 7;"});
  EXPECT_EQ(all.errors.find("the program alone"), std::string::npos) << all.errors;
}

TEST_F(DynamicTest, ProgramsThatItStartsByPath) {
  const Ending traced = record({std::string("--dynamic=") + kLua},
                               {"/bin/sh", "-c", std::string(kLua) + " -e 'print(6 * 7)'; exit 3"});
  ASSERT_TRUE(traced.exited_with(3)) << traced.errors;
  EXPECT_EQ(traced.output, "42\n");
  uint64_t calls = 0;
  for (const RecordedSession& session : sessions()) calls += count(session).calls;
  EXPECT_GT(calls, 1000u);
}

TEST_F(DynamicTest, ForkedChildrenAreRecorded) {
  const Ending traced =
      record({"--dynamic", "--quiet"}, {"/usr/bin/perl", "-e",
                                        "my $p = fork; if (!$p) { my $s = 0; $s += length($_) "
                                        "for 1..2000; exit 4 } waitpid($p, 0); print $? >> 8;"});
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_EQ(traced.output, "4");
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 2u);
  for (const RecordedSession& session : recorded) EXPECT_GT(session.totals().events, 1000u);
}

TEST_F(DynamicTest, SaysWhatItCannotTrace) {
  const Ending none = record({"--dynamic"}, {program("collectctl") + ".missing"});
  EXPECT_TRUE(none.exited_with(127));
  write_text_file(scratch_ / "text", "no program at all\n");
  ASSERT_EQ(::chmod((scratch_ / "text").c_str(), 0755), 0);
  const Ending text = record({"--dynamic"}, {scratch_ / "text"});
  EXPECT_TRUE(text.exited_with(125)) << text.describe();
  EXPECT_NE(text.errors.find("cannot be traced with --dynamic: it is no ELF file"),
            std::string::npos)
      << text.errors;
  const Ending prepared = record({"--dynamic"}, {traced_program("busy")});
  EXPECT_TRUE(prepared.exited_with(125)) << prepared.describe();
  EXPECT_NE(prepared.errors.find("instrumentation of its own"), std::string::npos)
      << prepared.errors;
  const Ending nothing = record({"--dynamic=no-such-library*"}, {kLua, "-v"});
  EXPECT_TRUE(nothing.exited_with(125)) << nothing.describe();
  EXPECT_NE(nothing.errors.find("the pattern matches neither"), std::string::npos)
      << nothing.errors;
}

TEST_F(DynamicTest, PlanSaysWhatIsLeftOut) {
  const Ending brief = ctl({"list", "--plan", kLua});
  ASSERT_TRUE(brief.exited_with(0)) << brief.errors;
  EXPECT_NE(brief.output.find("functions can be recorded"), std::string::npos) << brief.output;
  EXPECT_EQ(brief.output.find("0x"), std::string::npos);
  const Ending whole = ctl({"list", "--plan", "--all", kLua});
  const auto left_out = json::parse(ctl({"list", "--plan", "--json", kLua}).output).at("left_out");
  ASSERT_FALSE(left_out.empty());
  EXPECT_EQ(std::count(whole.output.begin(), whole.output.end(), '\n') -
                std::count(brief.output.begin(), brief.output.end(), '\n'),
            static_cast<std::ptrdiff_t>(left_out.size()));
  EXPECT_TRUE(ctl({"list", "--plan", scratch_ / "none"}).exited_with(2));
  write_text_file(scratch_ / "text", "no program at all\n");
  EXPECT_TRUE(ctl({"list", "--plan", scratch_ / "text"}).exited_with(1));
}

// Plans that lie. Each is as an agent would find it, in a folder of its own.
class LyingPlanTest : public DynamicTest {
 protected:
  void SetUp() override {
    auto plan = patch::plan_of_file(kLua);
    // The planner is beside collectctl, not beside this program.
    if (!plan.ok()) plan = made_by_collectctl();
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    plan_ = *plan;
  }

  Result<std::vector<uint8_t>> made_by_collectctl() {
    const Ending ending = record({"--dynamic", "--quiet"}, {kLua, "-v"});
    EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "cache")) {
      if (entry.path().extension() != ".plan") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      return std::vector<uint8_t>{std::istreambuf_iterator<char>(file), {}};
    }
    return Error{Code::kNotFound, "no plan was kept"};
  }

  void seal() {
    const uint32_t crc = crc32c(Bytes(plan_).subspan(offsetof(patch::PlanHeader, build_id_bytes)));
    store_le(plan_.data() + offsetof(patch::PlanHeader, crc), crc);
  }

  // The program does what it should, and the agent says why it is not traced.
  void expect_refused(const std::string& why, mode_t mode = 0600) {
    const auto folder = patch::PlanFolder::create();
    ASSERT_TRUE(folder.ok());
    patch::PlanView view;
    ASSERT_EQ(view.parse(made_), nullptr);
    ASSERT_TRUE(folder->add(made_, "").ok());
    std::string path;
    for (const auto& entry : fs::directory_iterator(folder->path())) path = entry.path();
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(plan_.data()),
               static_cast<std::streamsize>(plan_.size()));
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    CollectorProcess collector(scratch_);
    Environment environment = collector.tracing();
    environment["COLLECT_PLANS"] = folder->path();
    environment["COLLECT_LOG"] = "1";
    const Ending ending = run(scratch_.path(), {kLua, "-e", "print(#tostring(12))"}, environment);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    EXPECT_EQ(ending.output, "2\n");
    EXPECT_NE(ending.errors.find("is not traced: " + why), std::string::npos) << ending.errors;
  }

  std::vector<uint8_t> plan_;
  std::vector<uint8_t> made_;  // the same, unchanged
};

TEST_F(LyingPlanTest, IsRefused) {
  made_ = plan_;
  const size_t sites = sizeof(patch::PlanHeader) +
                       load_le<uint32_t>(plan_.data() + offsetof(patch::PlanHeader, region_bytes));
  const std::vector<uint8_t> good = plan_;

  plan_[sites + offsetof(patch::PlanSite, original)] ^= 1;  // the module's code is another
  seal();
  expect_refused("the module's code is not what the plan was made for");

  plan_ = good;
  plan_[sites + offsetof(patch::PlanSite, original)] ^= 1;  // not sealed
  expect_refused("its checksum does not match");

  plan_ = good;
  plan_[offsetof(patch::PlanHeader, build_id)] ^= 1;
  seal();
  expect_refused("it is for another build");

  plan_.assign(good.begin(), good.begin() + sizeof(patch::PlanHeader));  // without any table
  plan_.resize(sizeof(patch::PlanHeader) + patch::kStubsBegin);
  constexpr auto kArm64 = static_cast<uint32_t>(patch::Processor::kArm64);
  const std::map<size_t, uint32_t> fields = {
      {offsetof(patch::PlanHeader, region_bytes), patch::kStubsBegin},
      {offsetof(patch::PlanHeader, site_count), 0},
      {offsetof(patch::PlanHeader, sled_count), 0},
      {offsetof(patch::PlanHeader, relative_count), 0},
      {offsetof(patch::PlanHeader, absolute_count), 0},
      {offsetof(patch::PlanHeader, function_count), 0},
      {offsetof(patch::PlanHeader, processor), kArm64}};
  for (const auto& [field, value] : fields) store_le(plan_.data() + field, value);
  seal();
  expect_refused("it is for another processor");

  plan_ = good;
  store_le(plan_.data() + sites, uint32_t{0x40});  // the ELF header is no code
  seal();
  expect_refused("it has a window outside the code");

  plan_ = good;
  plan_.pop_back();
  expect_refused("its size is not what its header says");

  plan_ = good;
  expect_refused("others may have written it", 0622);
}

}  // namespace
}  // namespace collect::e2e
