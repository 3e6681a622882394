// A fleet: several collectors with one database, a real PostgreSQL server, and programs and phones
// that move between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/daemon/fleet/postgres.h"
#include "tests/daemon/web/http_client.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/grpc_tool.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/fake_adb_server.h"

namespace collect::e2e {
namespace {

using fleet::test::postgres;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr seconds kSoon{60};

class LeasesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres().missing().empty()) GTEST_SKIP() << postgres().missing();
    postgres().drop_tables();
  }

  // The collector's position in collectors_.
  size_t add_collector(const Arguments& more = {}, Arguments launcher = {}) {
    Arguments all{"--heartbeat-ms",   "200",           "--resume-ms", "1000",
                  "--fleet-database", postgres().url()};
    all.insert(all.end(), more.begin(), more.end());
    collectors_.push_back(std::make_unique<CollectorProcess>(
        scratch_, all, scratch_ / ("root" + std::to_string(collectors_.size())),
        std::move(launcher)));
    return collectors_.size() - 1;
  }
  CollectorProcess& collector(size_t at) { return *collectors_[at]; }

  void start_program(const Arguments& addresses, const Environment& more = {}) {
    Environment environment = collector(0).tracing();
    std::string all;
    for (const std::string& address : addresses) all += (all.empty() ? "" : ",") + address;
    environment["COLLECT_CONNECT"] = all;
    for (const auto& [name, value] : more) environment[name] = value;
    program_ = std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("chaos"), scratch_ / "progress", "2"},
        environment);
  }
  void end_program() {
    program_->send_signal(SIGTERM);
    EXPECT_TRUE(program_->wait(kSoon).exited_with(0));
  }
  json ctl(size_t at, Arguments words, int exit_code = 0) {
    words.push_back("--json");
    const Ending ending = collector(at).ctl(words);
    EXPECT_TRUE(ending.exited_with(exit_code))
        << ending.describe() << ending.output << ending.errors << "\nof the collector:\n"
        << collector(at).process().errors();
    return json::parse(ending.output, nullptr, false);
  }
  // Of a device: control address of who has it and the state of that collector, or "".
  std::string who_has(size_t asked, const std::string& device) {
    const Ending ending = collector(asked).ctl({"collectors", device, "--json"});
    const json answer = json::parse(ending.output, nullptr, false);
    if (answer.contains("error")) return answer["error"]["message"];
    std::string text;
    for (const json& one : answer["collectors"]) {
      for (const json& lease : one["leases"]) {
        text += (text.empty() ? "" : " and ") + one["control_address"].get<std::string>() + " " +
                one["state"].get<std::string>() + " " + lease.value("process_name", "-");
      }
    }
    return text;
  }
  bool soon_has(size_t asked, const std::string& device, const std::string& wanted) {
    std::string last;
    if (eventually(kSoon, [&] { return (last = who_has(asked, device)) == wanted; })) return true;
    ADD_FAILURE() << "\"" << last << "\" is not \"" << wanted << "\"";
    return false;
  }
  std::string device_id() {
    const json agents = ctl(0, {"agents"});
    return agents["agents"].empty() ? "" : agents["agents"][0]["device_id"].get<std::string>();
  }
  bool all_live(size_t count) {
    return eventually(kSoon, [&] {
      return postgres().value("SELECT count(*) FROM collect_collectors") == std::to_string(count);
    });
  }

  Scratch scratch_;
  std::vector<std::unique_ptr<CollectorProcess>> collectors_;
  std::unique_ptr<ChildProcess> program_;
};

TEST_F(LeasesTest, AProgramsLeaseMovesWithItAndGoesWithIt) {
  for (int i = 0; i < 3; ++i) add_collector();
  ASSERT_TRUE(all_live(3));
  start_program({collector(0).ingest(), collector(1).ingest()});
  ASSERT_TRUE(eventually(kSoon, [&] { return !device_id().empty(); }));
  const std::string device = device_id();
  // Any collector of the fleet knows.
  ASSERT_TRUE(soon_has(2, device, collector(0).control() + " live chaos"));
  const json lease = ctl(2, {"collectors", device})["collectors"][0]["leases"][0];
  EXPECT_EQ(lease["device"], device);
  EXPECT_EQ(lease["device_id"], device);
  EXPECT_EQ(lease["pid"], program_->pid());
  EXPECT_EQ(lease["agent"], "agents/1");
  EXPECT_LT(lease["age_s"], 60);

  collector(0).process().send_signal(SIGKILL);
  (void)collector(0).process().wait(kSoon);
  ASSERT_TRUE(soon_has(2, device, collector(1).control() + " live chaos"));
  end_program();
  EXPECT_TRUE(soon_has(2, device, ""));
  // The one that was killed is shown as away as soon as it has missed its time.
  ASSERT_TRUE(eventually(
      kSoon, [&] { return ctl(2, {"collectors"})["collectors"][2]["state"] == "away"; }));
  const json away = ctl(2, {"collectors"})["collectors"][2];
  EXPECT_EQ(away["control_address"], collector(0).control());
  EXPECT_GT(away["heartbeat_age_s"], 10);
  const Ending listed = collector(2).ctl({"agents", "--fleet"});
  EXPECT_TRUE(listed.exited_with(0)) << listed.errors;
  EXPECT_THAT(listed.errors, HasSubstr("(" + collector(0).control() + ") is away: "));
  EXPECT_THAT(listed.output, HasSubstr(collector(1).control()));
  // It comes again, in the same place: one, and not two. And one that is stopped is gone at once.
  collector(0).start_again();
  EXPECT_TRUE(eventually(kSoon, [&] {
    const json all = ctl(2, {"collectors"})["collectors"];
    return all.size() == 3 && all[2]["state"] == "live";
  }));
  collector(0).stop();
  EXPECT_EQ(ctl(2, {"collectors"})["collectors"].size(), 2u);
}

TEST_F(LeasesTest, ListsAgentsOfTheWholeFleet) {
  for (int i = 0; i < 2; ++i) add_collector();
  start_program({collector(1).ingest()});
  ASSERT_TRUE(all_live(2));
  ASSERT_TRUE(eventually(
      kSoon, [&] { return !session_directories(collector(1).root(), program_->pid()).empty(); }));
  const json agents = ctl(0, {"agents", "--fleet"});
  ASSERT_EQ(agents["collectors"].size(), 2u);
  std::set<std::string> names;
  size_t listed = 0;
  for (const json& one : agents["collectors"]) {
    names.insert(one["name"]);
    EXPECT_EQ(one["state"], "live");
    EXPECT_NE(one["host_name"], "");
    EXPECT_FALSE(one["collector_version"].get<std::string>().empty());
    for (const json& agent : one["agents"]) {
      EXPECT_EQ(one["control_address"], collector(1).control());
      EXPECT_EQ(agent["pid"], program_->pid());
      ++listed;
    }
  }
  EXPECT_EQ(listed, 1u);
  const std::string id = read_text_file(collector(0).root() + "/.collector_id").substr(0, 32);
  EXPECT_TRUE(names.lower_bound("collectors/" + id)->starts_with("collectors/" + id + "-1"));
  json collectors;
  EXPECT_TRUE(eventually(kSoon, [&] {
    collectors = ctl(0, {"collectors"})["collectors"];
    for (const json& one : collectors) {
      if (one["agents_connected"] == 1 && one["sessions_active"] == 1 && one["device_count"] == 1 &&
          one["uptime_s"] > 0) {
        return one["control_address"] == collector(1).control();
      }
    }
    return false;
  })) << collectors;
  const std::string text = collector(0).ctl({"sessions", "--fleet"}).output;
  EXPECT_THAT(text, HasSubstr("COLLECTOR"));
  EXPECT_THAT(text, HasSubstr(collector(1).control()));
  EXPECT_THAT(text, HasSubstr("pid_" + std::to_string(program_->pid())));
  EXPECT_THAT(collector(0).ctl({"sessions", "--fleet", "another"}).output,
              HasSubstr("no sessions"));
  // Pages are put together: the request asks for pages of the largest size.
  end_program();

  // One that is there, says the database, and does not answer; and one where nobody could be. The
  // database takes both for away after a while, so each question begins anew.
  const auto ask = [this](const Arguments& words) {
    postgres().sql(
        "DELETE FROM collect_collectors WHERE collector = 'x'; INSERT INTO collect_collectors "
        "VALUES "
        "('x', 1, 'dns:///evil', E'h\\x1b[2J', '', 0, 0)");
    collector(1).process().send_signal(SIGSTOP);
    Ending ending = collector(0).ctl(words);
    collector(1).process().send_signal(SIGCONT);
    EXPECT_TRUE(eventually(kSoon, [&] {
      const json all = ctl(0, {"collectors"})["collectors"];
      return std::ranges::all_of(all, [&](const json& one) {
        return one["control_address"] != collector(1).control() || one["heartbeat_age_s"] < 1;
      });
    }));
    EXPECT_TRUE(ending.exited_with(1)) << ending.output;
    return ending;
  };
  const json some = json::parse(ask({"sessions", "--fleet", "--json"}).output, nullptr, false);
  const Ending said = ask({"agents", "--fleet"});
  size_t errors = 0;
  for (const json& one : some["collectors"]) errors += one.contains("error") ? 1u : 0u;
  EXPECT_EQ(errors, 2u) << some;
  EXPECT_THAT(said.errors, HasSubstr("(" + collector(1).control() + ") was not listed: "));
  EXPECT_THAT(said.errors, HasSubstr("dns:///evil"));
  EXPECT_THAT(said.errors, Not(HasSubstr("\x1b")));
}

TEST_F(LeasesTest, ARecordingGoesOnWithoutTheDatabase) {
  const uint16_t port = free_port();
  add_collector({"--metrics", "127.0.0.1:" + std::to_string(port)});
  add_collector();
  ASSERT_TRUE(all_live(2));
  start_program({collector(0).ingest(), collector(1).ingest()});
  ASSERT_TRUE(eventually(kSoon, [&] { return !device_id().empty(); }));
  const std::string device = device_id();
  ASSERT_TRUE(soon_has(1, device, collector(0).control() + " live chaos"));
  EXPECT_EQ(ctl(0, {"stats"})["fleet"]["connected"], true);
  EXPECT_EQ(ctl(0, {"stats"})["fleet"]["leases"], 1);
  EXPECT_EQ(ctl(0, {"stats"})["fleet"]["leases_elsewhere"], 0);

  postgres().crash();
  ASSERT_TRUE(eventually(kSoon, [&] { return ctl(0, {"stats"})["fleet"]["failures"] > 1; }));
  EXPECT_THAT(collector(0).ctl({"stats"}).output, HasSubstr("the fleet's database: "));
  const json fleet = ctl(0, {"stats"})["fleet"];
  EXPECT_EQ(fleet["connected"], false);
  EXPECT_THAT(fleet["status"].get<std::string>(), HasSubstr("the fleet's database: "));
  web::HttpClient client(port);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.read_answer().body, HasSubstr("\ncollectord_fleet_connected 0\n"));
  const json unavailable = ctl(0, {"collectors"}, 1);
  EXPECT_EQ(unavailable["error"]["code"], "unavailable");
  // Meanwhile the program moves.
  collector(0).process().send_signal(SIGKILL);
  (void)collector(0).process().wait(kSoon);
  ASSERT_TRUE(eventually(
      kSoon, [&] { return !session_directories(collector(1).root(), program_->pid()).empty(); }));
  postgres().start();
  EXPECT_TRUE(soon_has(1, device, collector(1).control() + " live chaos"));
  end_program();
  // Nothing is missing of what it recorded, in the two parts together.
  collector(0).start_again();
  Arguments merge{program("collectctl"), "merge", "--json", "-o", scratch_ / "merged"};
  for (const auto& one : collectors_) {
    for (const std::string& directory : session_directories(one->root(), program_->pid())) {
      EXPECT_TRUE(
          eventually(kSoon, [&] { return RecordedSession(directory).state() != "recording"; }));
    }
    merge.push_back(one->root());
  }
  const Ending merged = run(scratch_.path(), merge);
  EXPECT_TRUE(merged.exited_with(0)) << merged.output << merged.errors;
  // The log says it once, not at each attempt.
  const std::string log = collector(1).process().errors();
  const size_t first = log.find("recording goes on");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("recording goes on", first + 1), std::string::npos) << log;
}

TEST_F(LeasesTest, WrongClocksDoNotMatter) {
  const auto with_clock = [](const char* ahead) {
    return Arguments{"env", "LD_PRELOAD=" WRONG_CLOCK_LIBRARY,
                     std::string("WRONG_CLOCK_SECONDS=") + ahead};
  };
  add_collector({}, with_clock("-86400"));
  add_collector({}, with_clock("86400"));
  ASSERT_TRUE(all_live(2));
  // The clocks are wrong indeed.
  const std::string epochs =
      postgres().value("SELECT max(epoch) - min(epoch) FROM collect_collectors");
  EXPECT_NEAR(std::stod(epochs), 2 * 86'400'000.0, 60'000);
  for (const size_t at : {size_t{0}, size_t{1}}) {
    for (const json& one : ctl(at, {"collectors"})["collectors"]) {
      EXPECT_EQ(one["state"], "live");
      EXPECT_LT(one["heartbeat_age_s"], 10);
      EXPECT_LT(one["uptime_s"], 60);
    }
  }
  start_program({collector(1).ingest(), collector(0).ingest()});
  ASSERT_TRUE(eventually(kSoon, [&] { return !ctl(1, {"agents"})["agents"].empty(); }));
  const std::string device = ctl(1, {"agents"})["agents"][0]["device_id"];
  ASSERT_TRUE(soon_has(0, device, collector(1).control() + " live chaos"));
  collector(1).process().send_signal(SIGKILL);
  (void)collector(1).process().wait(kSoon);
  EXPECT_TRUE(soon_has(0, device, collector(0).control() + " live chaos"));
  end_program();
}

TEST_F(LeasesTest, APhoneIsWithWhomItCameToLast) {
  fakes::FakeAdbServer here, there;
  here.start();
  there.start();
  add_collector({"--adb", here.address()});
  add_collector({"--adb", there.address()});
  here.plug("R58M", {});
  ASSERT_TRUE(soon_has(1, "R58M", collector(0).control() + " live -"));
  EXPECT_EQ(who_has(1, "Sim_Phone"), collector(0).control() + " live -");
  EXPECT_EQ(ctl(1, {"collectors", "R58M"})["collectors"][0]["leases"][0]["device_model"],
            "Sim_Phone");
  // In the network it is at both: who sees it last has it, and both know.
  there.plug("R58M", {});
  ASSERT_TRUE(soon_has(0, "R58M", collector(1).control() + " live -"));
  EXPECT_TRUE(
      eventually(kSoon, [&] { return ctl(0, {"stats"})["fleet"]["leases_elsewhere"] == 1; }));
  const json devices = ctl(0, {"devices", "--fleet"});
  for (const json& one : devices["collectors"]) EXPECT_EQ(one["devices"][0]["serial"], "R58M");
  there.unplug("R58M");
  EXPECT_TRUE(soon_has(1, "R58M", collector(0).control() + " live -"));
  here.unplug("R58M");
  EXPECT_TRUE(soon_has(1, "R58M", ""));
}

// Ages, not times: as a client sees them that knows the interface by reflection alone.
TEST_F(LeasesTest, AnyClientOfTheControlPlaneCanAsk) {
  const GrpcTool tool("COLLECT_BUF");
  if (!tool.is_there()) GTEST_SKIP() << "COLLECT_BUF names no program";
  add_collector();
  start_program({collector(0).ingest()});
  ASSERT_TRUE(eventually(kSoon, [&] { return !device_id().empty(); }));
  const std::string device = device_id();
  ASSERT_TRUE(soon_has(0, device, collector(0).control() + " live chaos"));
  postgres().sql("UPDATE collect_leases SET since = now() - interval '90 s'");
  const Ending ending =
      tool.call(collector(0), scratch_, "ListCollectors", "{\"device\": \"" + device + "\"}");
  ASSERT_TRUE(ending.exited_with(0)) << ending.errors;
  const json one = json::parse(ending.output)["collectors"][0];
  const auto seconds_in = [](const json& duration) {
    return std::stod(duration.get<std::string>());
  };
  EXPECT_EQ(one["state"], "COLLECTOR_STATE_LIVE");
  EXPECT_GT(seconds_in(one["uptime"]), 0);
  EXPECT_LT(seconds_in(one["heartbeatAge"]), 10);
  EXPECT_NEAR(seconds_in(one["leases"][0]["age"]), 95, 6);
  end_program();
}

TEST_F(LeasesTest, OthersAreToldTheAddressOfTheSetting) {
  add_collector({"--fleet-address", "lab-1.example.org:7711"});
  ASSERT_TRUE(all_live(1));
  const json one = ctl(0, {"collectors"})["collectors"][0];
  EXPECT_EQ(one["control_address"], "lab-1.example.org:7711");
  const Ending ending = collector(0).ctl({"collectors"});
  EXPECT_THAT(ending.output, HasSubstr("lab-1.example.org:7711"));
}

TEST(NoFleetTest, IsSaid) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  for (const Arguments& words : {Arguments{"collectors"}, Arguments{"agents", "--fleet"}}) {
    const Ending ending = collector.ctl(words);
    EXPECT_TRUE(ending.exited_with(1));
    EXPECT_EQ(ending.errors,
              "collectctl: this collector belongs to no fleet; set fleet_database\n");
  }
  EXPECT_THAT(collector.ctl({"stats", "--json"}).output, Not(HasSubstr("\"fleet\"")));
}

TEST(NoFleetTest, ADatabaseThatIsNotThereStopsNobody) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--fleet-database", "postgresql://x@127.0.0.1:1/fleet"});
  const Ending traced = run(scratch.path(), {traced_program("steady"), "burst", "100", "5"},
                            collector.tracing(), seconds(60));
  EXPECT_TRUE(traced.exited_with(0)) << traced.errors;
  EXPECT_EQ(sealed_sessions(collector.root(), 0).at(0).state(), "complete");
  EXPECT_THAT(collector.ctl({"collectors"}).errors, HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace collect::e2e
