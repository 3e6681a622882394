// Forged module frames that name poisonous files, against the real daemon: sessions are sealed
// quickly, others get their names, and the daemon ends in time and starts again, however often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/atf/layout.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using symbolize::test::ElfFile;
using symbolize::test::exponential_name;

constexpr uint32_t kAttacker = 4'200'100;  // above the largest pid that Linux gives out
constexpr uint32_t kWitness = 4'200'900;
constexpr uint32_t kAddress = 0x1000;
// Far below what any of these files once took; far above what a busy machine takes.
constexpr seconds kSealBound{30};
constexpr seconds kNamesBound{150};
constexpr char kPending[] = "pending";

struct NamedModule {
  std::string path;
  std::vector<uint8_t> build_id = ElfFile().build_id;
};

// A process that records one call of one function of each module, and ends.
void record(const CollectorProcess& collector, uint32_t pid,
            const std::vector<NamedModule>& named) {
  RawAgent agent(collector.ingest_port(), pid);
  ASSERT_TRUE(agent.ready);
  constexpr size_t kModulesPerFrame = 16;
  for (size_t at = 0; at < named.size(); at += kModulesPerFrame) {
    wire::Modules modules;
    for (size_t i = at; i < std::min(named.size(), at + kModulesPerFrame); ++i) {
      wire::Module* module = modules.add_modules();
      module->set_module_id(static_cast<uint32_t>(i));
      module->set_path(named[i].path);
      module->set_build_id(named[i].build_id.data(), named[i].build_id.size());
    }
    ASSERT_TRUE(agent.data.send(wire::FrameType::kModules, modules));
  }
  constexpr uint32_t kEventsPerPage = 2'000;
  const auto count = static_cast<uint32_t>(2 * named.size());
  for (uint32_t first = 0; first < count; first += kEventsPerPage) {
    Octets page = events(1'000 + first, std::min(kEventsPerPage, count - first));
    for (uint32_t i = 0; i * atf::kEventBytes < page.size(); ++i) {
      const uint64_t id = uint64_t{(first + i) / 2} << 32 | kAddress;
      store_le(page.data() + i * atf::kEventBytes + 8, id);
    }
    ASSERT_TRUE(agent.data.send(page_bytes(1, first, page)));
  }
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(count);
  wire::RecordingEnd end;
  end.set_recording(1);
  ASSERT_TRUE(agent.data.send(wire::FrameType::kStreamClose, close));
  ASSERT_TRUE(agent.data.send(wire::FrameType::kRecordingEnd, end));
  const auto sealed = [&] {
    const auto directories = session_directories(collector.root(), static_cast<int>(pid));
    return directories.size() == 1 && RecordedSession(directories[0]).state() == "complete";
  };
  EXPECT_TRUE(eventually(kSealBound, sealed)) << "process " << pid << " is not sealed";
}

json manifest_of(const CollectorProcess& collector, uint32_t pid) {
  const auto directories = session_directories(collector.root(), static_cast<int>(pid));
  return directories.empty() ? json() : RecordedSession(directories[0]).manifest();
}

std::string symbols_state(const CollectorProcess& collector, uint32_t pid) {
  return manifest_of(collector, pid).value("symbols_state", std::string());
}

bool is_named(const CollectorProcess& collector, uint32_t pid, seconds limit = kNamesBound) {
  return eventually(limit, [&] { return symbols_state(collector, pid) == "done"; });
}

class RedTeamSymbolsTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::ofstream out(scratch_ / name, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    return scratch_ / name;
  }
  std::string good_file() {
    ElfFile file;
    file.symbols = {{kAddress, "_ZN7witness4workEv"}};
    return write("good.so", file.bytes());
  }
  std::string name_bomb() {
    ElfFile file;
    file.symbols = {{kAddress, exponential_name(24)}};
    return write("name_bomb.so", file.bytes());
  }
  std::string sparse_file() {
    ElfFile file;
    file.symbols = {{kAddress, "f"}};
    file.claimed_strings_bytes = 3ull << 30;
    const std::string path = write("sparse.so", file.bytes());
    EXPECT_EQ(::truncate(path.c_str(), off_t{4} << 30), 0);
    return path;
  }
  std::string endless_sections() {
    ElfFile file;
    file.claimed_sections = 60'000'000;
    const std::string path = write("sections.so", file.bytes());
    EXPECT_EQ(::truncate(path.c_str(), off_t{5} << 30), 0);
    return path;
  }
  std::vector<NamedModule> poisons() {
    const std::string pipe = scratch_ / "pipe.so";
    ::mkfifo(pipe.c_str(), 0600);
    return {{name_bomb()}, {sparse_file()},        {endless_sections()},
            {pipe},        {"/dev/zero"},          {"/proc/self/cwd/good.so"},
            {"/dev/tty"},  {"/proc/kcore"},        {"/proc/self/mem"},
            {""},          {std::string(200, 'x')}};
  }
  void expect_witness(const CollectorProcess& collector, uint32_t pid) {
    ASSERT_TRUE(is_named(collector, pid)) << manifest_of(collector, pid).dump(1);
    const json symbols = manifest_of(collector, pid)["symbols"];
    ASSERT_EQ(symbols.size(), 1u);
    EXPECT_EQ(symbols[0]["name"], "witness::work()");
  }

  Scratch scratch_;
};

TEST_F(RedTeamSymbolsTest, PoisonousFilesCostTheirOwnNames) {
  CollectorProcess collector(scratch_);
  std::vector<NamedModule> modules = poisons();
  modules.push_back({good_file()});
  record(collector, kAttacker, modules);
  record(collector, kWitness, {{good_file()}});
  expect_witness(collector, kWitness);
  ASSERT_TRUE(is_named(collector, kAttacker));
  const json manifest = manifest_of(collector, kAttacker);
  EXPECT_EQ(manifest["state"], "complete");
  ASSERT_EQ(manifest["module_symbols"].size(), modules.size());
  EXPECT_EQ(manifest["module_symbols"].back()["named"], 1) << "the good one among them";
  for (const json& symbol : manifest["symbols"]) {
    EXPECT_LE(symbol["name"].get<std::string>().size(), 2'048u);
  }
  EXPECT_LT(collector.process().resident_bytes(), 200u << 20);
}

// What may not be read, what is no file, and what is not there: no one can tell them apart.
TEST_F(RedTeamSymbolsTest, ManifestIsNoOracle) {
  CollectorProcess collector(scratch_);
  ElfFile other;
  other.build_id[0] ^= 1;
  const std::string secret = write("secret.so", {'s'});
  ASSERT_EQ(::chmod(secret.c_str(), 0), 0);
  const std::vector<NamedModule> modules = {{scratch_ / "missing.so"},
                                            {secret},
                                            {"/etc/shadow"},
                                            {scratch_.path()},
                                            {"/dev/zero"},
                                            {"/proc/self/exe"},
                                            {write("other.so", other.bytes())}};
  record(collector, kAttacker, modules);
  ASSERT_TRUE(is_named(collector, kAttacker));
  const json outcomes = manifest_of(collector, kAttacker)["module_symbols"];
  ASSERT_EQ(outcomes.size(), modules.size());
  for (const json& outcome : outcomes) {
    EXPECT_EQ(outcome["problem"], outcomes[0]["problem"]) << outcome.dump();
    EXPECT_EQ(outcome.value("source", ""), "");
  }
}

TEST_F(RedTeamSymbolsTest, ManyModulesThatNameOneFileAreOneLookup) {
  CollectorProcess collector(scratch_);
  // The largest file there is: the collector itself.
  const std::vector<NamedModule> modules(16'384, NamedModule{program("collectord")});
  record(collector, kAttacker, modules);
  record(collector, kWitness, {{good_file()}});
  expect_witness(collector, kWitness);
  EXPECT_TRUE(is_named(collector, kAttacker));
}

TEST_F(RedTeamSymbolsTest, DaemonEndsInTimeAndContinuesNextTime) {
  CollectorProcess collector(scratch_);
  // Each of them is looked at by a lookup of its own.
  std::vector<NamedModule> modules;
  for (int i = 0; i < 200; ++i) {
    const std::string link = scratch_ / ("poison_" + std::to_string(i) + ".so");
    std::filesystem::create_symlink(i % 2 == 0 ? sparse_file() : endless_sections(), link);
    modules.push_back({link});
  }
  record(collector, kAttacker, modules);
  EXPECT_TRUE(collector.stop(seconds(25)).exited_with(0)) << collector.process().errors();
  const std::string state = symbols_state(collector, kAttacker);
  EXPECT_TRUE(state == kPending || state == "done") << state;
  collector.start_again();
  record(collector, kWitness, {{good_file()}});
  expect_witness(collector, kWitness);
}

TEST_F(RedTeamSymbolsTest, KilledDaemonSealsAndNamesOthersNextTime) {
  CollectorProcess collector(scratch_);
  record(collector, kAttacker, poisons());
  for (uint32_t round = 0; round < 3; ++round) {
    collector.process().send_signal(SIGKILL);
    collector.process().wait(seconds(20));
    collector.start_again();
    record(collector, kWitness + round, {{good_file()}});
    expect_witness(collector, kWitness + round);
    EXPECT_EQ(manifest_of(collector, kAttacker)["state"], "complete");
  }
  // Named after all, or given up for good: not tried for ever.
  EXPECT_TRUE(eventually(kNamesBound, [&] {
    return symbols_state(collector, kAttacker) != kPending;
  })) << symbols_state(collector, kAttacker);
}

TEST_F(RedTeamSymbolsTest, WithoutItsProgramSessionsAreWholeAndNamedLater) {
  // The daemon alone, without what is beside it.
  const std::string alone = scratch_ / "alone";
  std::filesystem::create_directories(alone);
  std::filesystem::copy_file(program("collectord"), alone + "/collectord");
  const uint16_t ingest = free_port();
  const std::string root = scratch_ / "root";
  CollectorProcess collector(scratch_);  // its ports are its own
  ChildProcess lonely(scratch_.path(),
                      {alone + "/collectord", "--root", root + "_lonely", "--ingest",
                       "127.0.0.1:" + std::to_string(ingest), "--control", "127.0.0.1:0", "--adb",
                       "off", "--usbmux", "off"});
  ASSERT_TRUE(eventually(seconds(20), [&] { return answers(ingest); })) << lonely.errors();
  RawAgent agent(ingest, kAttacker);
  ASSERT_TRUE(agent.ready);
  wire::Modules modules;
  wire::Module* module = modules.add_modules();
  module->set_path(good_file());
  module->set_build_id(ElfFile().build_id.data(), ElfFile().build_id.size());
  agent.data.send(wire::FrameType::kModules, modules);
  agent.data.send(page_bytes(1, 0, events(1'000, 2)));
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(2);
  wire::RecordingEnd end;
  end.set_recording(1);
  agent.data.send(wire::FrameType::kStreamClose, close);
  agent.data.send(wire::FrameType::kRecordingEnd, end);
  const auto session = [&] { return session_directories(root + "_lonely"); };
  ASSERT_TRUE(eventually(kSealBound, [&] {
    return session().size() == 1 &&
           RecordedSession(session()[0]).manifest().value("symbols_state", "") == "failed";
  })) << lonely.errors();
  EXPECT_EQ(RecordedSession(session()[0]).state(), "complete");
  EXPECT_THAT(RecordedSession(session()[0]).manifest()["events"].dump(),
              ::testing::HasSubstr("collect-symbolizer"));
  lonely.send_signal(SIGTERM);
  EXPECT_TRUE(lonely.wait(seconds(30)).exited_with(0));
  const Ending named = run(scratch_.path(), {program("collectctl"), "symbolize", session()[0]});
  EXPECT_TRUE(named.exited_with(0)) << named.describe() << named.errors;
  EXPECT_EQ(RecordedSession(session()[0]).manifest()["symbols"][0]["name"], "witness::work()");
}

// A session from another machine, and an unstripped file that came later.
TEST_F(RedTeamSymbolsTest, SessionIsNamedLaterByBuildId) {
  CollectorProcess collector(scratch_);
  record(collector, kAttacker, {{"/data/app/libapp.so"}});
  ASSERT_TRUE(is_named(collector, kAttacker));
  EXPECT_TRUE(manifest_of(collector, kAttacker)["symbols"].empty());
  const std::string directory = session_directories(collector.root())[0];
  const Arguments command = {program("collectctl"), "symbolize", directory};
  const Ending nothing = run(scratch_.path(), command);
  EXPECT_TRUE(nothing.exited_with(1)) << nothing.describe() << nothing.errors;
  EXPECT_THAT(nothing.output, ::testing::HasSubstr("no file with this build id"));

  std::filesystem::create_directories(scratch_ / "symbols");
  std::filesystem::copy_file(good_file(), scratch_ / "symbols/libapp.so");
  Arguments with = command;
  with.insert(with.end(), {"--symbols", scratch_ / "symbols"});
  const Ending named = run(scratch_.path(), with);
  EXPECT_TRUE(named.exited_with(0)) << named.describe() << named.errors;
  EXPECT_THAT(named.output, ::testing::HasSubstr("1 of 1 functions named"));
  EXPECT_EQ(manifest_of(collector, kAttacker)["symbols"][0]["name"], "witness::work()");
  // The daemon shows what is on the disk.
  const Ending shown = collector.ctl({"--json", "inspect", "--at-collector"});
  EXPECT_THAT(shown.output, ::testing::HasSubstr("witness::work()"));

  EXPECT_TRUE(run(scratch_.path(), {program("collectctl"), "symbolize", scratch_ / "nowhere"})
                  .exited_with(2));
  with.back() = scratch_ / "no_such_directory";
  EXPECT_TRUE(run(scratch_.path(), with).exited_with(2));
}

}  // namespace
}  // namespace collect::e2e
