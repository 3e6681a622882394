// How agents, devices and sessions are shown on the control plane.
#include "daemon/collector/agents/messages.h"

#include <gmock/gmock.h>

namespace collect::daemon {
namespace {

using ingest::SystemTime;

TEST(CollectorMessagesTest, EveryStateHasItsOwn) {
  const auto agent = [](ingest::AgentState state) {
    ingest::AgentSnapshot shown;
    shown.state = state;
    return to_message(shown).state();
  };
  EXPECT_EQ(agent(ingest::AgentState::kDialing), api::AGENT_STATE_DIALING);
  EXPECT_EQ(agent(ingest::AgentState::kConnected), api::AGENT_STATE_CONNECTED);
  EXPECT_EQ(agent(ingest::AgentState::kRecording), api::AGENT_STATE_RECORDING);
  EXPECT_EQ(agent(ingest::AgentState::kDisconnected), api::AGENT_STATE_DISCONNECTED);
  EXPECT_EQ(agent(ingest::AgentState::kGone), api::AGENT_STATE_GONE);
  const auto session = [](ingest::SessionState state) {
    ingest::SessionSnapshot shown;
    shown.state = state;
    return to_message(shown).state();
  };
  EXPECT_EQ(session(ingest::SessionState::kActive), api::SESSION_STATE_ACTIVE);
  EXPECT_EQ(session(ingest::SessionState::kInterrupted), api::SESSION_STATE_INTERRUPTED);
  EXPECT_EQ(session(ingest::SessionState::kSealing), api::SESSION_STATE_SEALING);
  EXPECT_EQ(session(ingest::SessionState::kComplete), api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(session(ingest::SessionState::kRecovered), api::SESSION_STATE_RECOVERED);
  EXPECT_EQ(session(ingest::SessionState::kFailed), api::SESSION_STATE_FAILED);
  const auto device = [](attach::DeviceState state) {
    attach::DeviceView shown;
    shown.state = state;
    return to_message(shown).state();
  };
  EXPECT_EQ(device(attach::DeviceState::kServing), api::DEVICE_STATE_SERVING);
  EXPECT_EQ(device(attach::DeviceState::kNoAgent), api::DEVICE_STATE_NO_AGENT);
  EXPECT_EQ(device(attach::DeviceState::kBlocked), api::DEVICE_STATE_BLOCKED);
  EXPECT_EQ(device(attach::DeviceState::kAbsent), api::DEVICE_STATE_ABSENT);
}

TEST(CollectorMessagesTest, AgentIsShownWhole) {
  ingest::AgentSnapshot agent;
  agent.id = 7;
  agent.process_name = "app";
  agent.executable = "/bin/app";
  agent.pid = 1;
  agent.parent_pid = 2;
  agent.device_id = "device";
  agent.device_model = "model";
  agent.os = "linux";
  agent.arch = "x86_64";
  agent.address = "unix:/\xff";
  agent.tag = "tag";
  agent.agent_version = "1.0";
  agent.detail = ingest::DetailMode::kArmed;
  agent.status = "fine";
  agent.reconnects = 3;
  agent.link_raw_bytes = 4;
  agent.link_sent_bytes = 5;
  agent.spooled_bytes = 6;
  api::Agent shown = to_message(agent);
  EXPECT_EQ(shown.name(), "agents/7");
  EXPECT_EQ(shown.process_name(), "app");
  EXPECT_EQ(shown.executable(), "/bin/app");
  EXPECT_EQ(shown.pid(), 1u);
  EXPECT_EQ(shown.parent_pid(), 2u);
  EXPECT_EQ(shown.device_id(), "device");
  EXPECT_EQ(shown.device_model(), "model");
  EXPECT_EQ(shown.os(), "linux");
  EXPECT_EQ(shown.arch(), "x86_64");
  EXPECT_EQ(shown.address(), "unix:/\\xff") << "clients refuse what is no UTF-8";
  EXPECT_EQ(shown.tag(), "tag");
  EXPECT_EQ(shown.agent_version(), "1.0");
  EXPECT_EQ(shown.detail(), api::DETAIL_MODE_ARMED);
  EXPECT_EQ(shown.status(), "fine");
  EXPECT_EQ(shown.reconnects(), 3u);
  EXPECT_EQ(shown.link_raw_bytes(), 4u);
  EXPECT_EQ(shown.link_sent_bytes(), 5u);
  EXPECT_EQ(shown.spooled_bytes(), 6u);
  EXPECT_FALSE(shown.has_connect_time()) << "it was never";
  EXPECT_EQ(shown.session(), "") << "it has recorded nothing";
  agent.connected_at = SystemTime(std::chrono::seconds(1'700'000'000));
  agent.session = "session_1/pid_1";
  agent.detail = ingest::DetailMode::kOn;
  shown = to_message(agent);
  EXPECT_EQ(shown.connect_time().seconds(), 1'700'000'000);
  EXPECT_EQ(shown.session(), "sessions/session_1/pid_1");
  EXPECT_EQ(shown.detail(), api::DETAIL_MODE_ON);
}

ingest::SessionSnapshot running_session() {
  ingest::SessionSnapshot session;
  session.name = "session_1/pid_1";
  session.directory = "/traces/session_1/pid_1";
  session.state = ingest::SessionState::kActive;
  session.process_name = "app";
  session.pid = 1;
  session.device_id = "device";
  session.tag = "tag";
  session.start_time = SystemTime(std::chrono::seconds(1'700'000'000));
  session.totals.threads = 2;
  session.totals.events = 3;
  session.totals.detail_records = 4;
  session.totals.lost_events = 5;
  session.totals.lost_detail_records = 6;
  session.totals.stored_bytes = 7;
  session.totals.container_bytes = 8;
  session.totals.stalls.count = 9;
  session.totals.stalls.stalled_ns = 10;
  session.totals.stalls.page_wait_ns = 11;
  session.totals.calls_left_out = 12;
  session.late_ns = 13;
  session.detail = ingest::DetailMode::kArmed;
  session.status = "fine";
  session.health.missing = "half of it";
  return session;
}

TEST(CollectorMessagesTest, RunningSessionIsShownWhole) {
  const api::Session shown = to_message(running_session());
  EXPECT_EQ(shown.name(), "sessions/session_1/pid_1");
  EXPECT_EQ(shown.path(), "/traces/session_1/pid_1");
  EXPECT_EQ(shown.agent(), "") << "a feed has none";
  EXPECT_EQ(shown.process_name(), "app");
  EXPECT_EQ(shown.pid(), 1u);
  EXPECT_EQ(shown.device_id(), "device");
  EXPECT_EQ(shown.tag(), "tag");
  EXPECT_EQ(shown.start_time().seconds(), 1'700'000'000);
  EXPECT_FALSE(shown.has_end_time());
  EXPECT_EQ(shown.threads(), 2u);
  EXPECT_EQ(shown.events(), 3u);
  EXPECT_EQ(shown.detail_records(), 4u);
  EXPECT_EQ(shown.lost_events(), 5u);
  EXPECT_EQ(shown.lost_detail_records(), 6u);
  EXPECT_EQ(shown.stored_bytes(), 7u);
  EXPECT_EQ(shown.container_bytes(), 8u);
  EXPECT_EQ(shown.stall_count(), 9u);
  EXPECT_EQ(shown.stalled_ns(), 10u);
  EXPECT_EQ(shown.page_wait_ns(), 11u);
  EXPECT_EQ(shown.calls_left_out(), 12u);
  EXPECT_EQ(shown.late_ns(), 13u);
  EXPECT_EQ(shown.detail(), api::DETAIL_MODE_ARMED);
  EXPECT_EQ(shown.status(), "fine");
  EXPECT_EQ(shown.missing(), "") << "it continues";
  EXPECT_EQ(shown.symbols(), api::SYMBOLS_STATE_UNSPECIFIED);
  EXPECT_FALSE(shown.has_process_end());
}

TEST(CollectorMessagesTest, SealedSessionIsShownWhole) {
  ingest::SessionSnapshot session = running_session();
  session.state = ingest::SessionState::kRecovered;
  session.agent = 7;
  session.end_time = SystemTime(std::chrono::seconds(1'700'000'001));
  session.health.lost_events = 50;  // with those of threads without a stream
  session.health.losses_known = true;
  session.symbols = storage::SymbolsState::kDone;
  session.process_end.how = storage::ProcessEnd::How::kSignaled;
  session.process_end.signal = 11;
  session.process_end.core_dumped = true;
  const api::Session shown = to_message(session);
  EXPECT_EQ(shown.agent(), "agents/7");
  EXPECT_EQ(shown.end_time().seconds(), 1'700'000'001);
  EXPECT_EQ(shown.lost_events(), 50u);
  EXPECT_TRUE(shown.losses_known());
  EXPECT_EQ(shown.missing(), "half of it");
  EXPECT_EQ(shown.symbols(), api::SYMBOLS_STATE_DONE);
  EXPECT_EQ(shown.process_end().how(), api::ProcessEnd::HOW_SIGNALED);
  EXPECT_EQ(shown.process_end().signal(), 11);
  EXPECT_TRUE(shown.process_end().core_dumped());
}

TEST(CollectorMessagesTest, HowAProcessEnded) {
  using How = storage::ProcessEnd::How;
  const auto how = [](How end) {
    ingest::SessionSnapshot session;
    session.process_end.how = end;
    session.process_end.exit_code = 3;
    const api::Session shown = to_message(session);
    EXPECT_EQ(shown.process_end().has_exit_code(), end == How::kExited);
    EXPECT_EQ(shown.process_end().exit_code(), end == How::kExited ? 3 : 0);
    return shown.process_end().how();
  };
  EXPECT_EQ(how(How::kExited), api::ProcessEnd::HOW_EXITED);
  EXPECT_EQ(how(How::kSignaled), api::ProcessEnd::HOW_SIGNALED);
  EXPECT_EQ(how(How::kExeced), api::ProcessEnd::HOW_EXECED);
}

TEST(CollectorMessagesTest, DeviceIsShownWhole) {
  attach::DeviceView device;
  device.via = "adb";
  device.device = {"A", "usb", "Sim", "device", true, "why", "what to do", {"A", "10.0.0.1:5555"}};
  device.endpoints = {{"collect_agent_7", "agents/1", "waits"}};
  const api::Device shown = to_message(device);
  EXPECT_EQ(shown.name(), "devices/A");
  EXPECT_EQ(shown.serial(), "A");
  EXPECT_EQ(shown.via(), "adb");
  EXPECT_EQ(shown.connection(), "usb");
  EXPECT_EQ(shown.model(), "Sim");
  EXPECT_EQ(shown.reported_state(), "device");
  EXPECT_EQ(shown.reason(), "why");
  EXPECT_EQ(shown.advice(), "what to do");
  EXPECT_EQ(shown.routes(1), "10.0.0.1:5555");
  ASSERT_EQ(shown.agents_size(), 1);
  EXPECT_EQ(shown.agents(0).socket(), "collect_agent_7");
  EXPECT_EQ(shown.agents(0).agent(), "agents/1");
  EXPECT_EQ(shown.agents(0).status(), "waits");
}

TEST(CollectorMessagesTest, ModesGoToTheAgentAsTheyCame) {
  EXPECT_EQ(to_wire(api::DETAIL_MODE_ON), wire::DETAIL_ON);
  EXPECT_EQ(to_wire(api::DETAIL_MODE_ARMED), wire::DETAIL_ARMED);
  EXPECT_EQ(to_wire(api::DETAIL_MODE_OFF), wire::DETAIL_OFF);
  EXPECT_EQ(to_wire(api::DETAIL_MODE_UNSPECIFIED), wire::DETAIL_OFF);
}

TEST(CollectorMessagesTest, NamesHaveTheirPrefixOrNot) {
  EXPECT_EQ(bare_agent_name("agents/7"), "7");
  EXPECT_EQ(bare_agent_name("7"), "7");
  EXPECT_EQ(bare_session_name("sessions/s/pid_1"), "s/pid_1");
  EXPECT_EQ(bare_session_name("s/pid_1"), "s/pid_1");
}

TEST(CollectorMessagesTest, ManifestListsItsStalls) {
  storage::Manifest manifest;
  manifest.stalls = {{.kind = storage::StallKind::kPageWait,
                      .first_ns = 100,
                      .last_ns = 900,
                      .stalled_ns = 500,
                      .count = 3,
                      .thread = 2},
                     {.kind = storage::StallKind::kSuspended,
                      .first_ns = 1000,
                      .last_ns = 4000,
                      .stalled_ns = 3000}};
  const auto message =
      manifest_message("session_20260131_235959/pid_7", storage::manifest_to_json(manifest));
  ASSERT_TRUE(message.ok());
  ASSERT_EQ(message->stalls_size(), 2);
  // Those of the whole process are not listed among the threads'.
  const bool process_first = !message->stalls(0).has_thread();
  const api::ManifestStall& of_thread = message->stalls(process_first ? 1 : 0);
  const api::ManifestStall& of_all = message->stalls(process_first ? 0 : 1);
  EXPECT_EQ(of_thread.kind(), "page_wait");
  EXPECT_EQ(of_thread.thread(), 2u);
  EXPECT_EQ(of_thread.first_ns(), 100u);
  EXPECT_EQ(of_thread.last_ns(), 900u);
  EXPECT_EQ(of_thread.stalled_ns(), 500u);
  EXPECT_EQ(of_thread.count(), 3u);
  EXPECT_EQ(of_all.kind(), "suspended");
  EXPECT_FALSE(of_all.has_thread());
  EXPECT_EQ(of_all.stalled_ns(), 3000u);
  EXPECT_EQ(of_all.count(), 1u);
}

storage::Manifest full_manifest() {
  storage::Manifest manifest;
  manifest.identity.version = atf::Version::kV1;
  manifest.state = storage::SessionState::kRecovered;
  manifest.time_start_ns = 10;
  manifest.time_end_ns = 20;
  manifest.symbols = {{7, "main"}};
  storage::ManifestThread thread;
  thread.id = 1;
  thread.thread_id = 4711;
  thread.name = "worker";
  thread.has_detail = true;
  thread.events = 2;
  thread.detail_records = 3;
  thread.lost_events = 4;
  thread.lost_detail_records = 5;
  manifest.threads = {thread};
  manifest.modules = {{6, "/lib/a.so", {0xab, 0x0c}, 0x7000, 8}};
  manifest.gaps = {{.thread = 1,
                    .lane = Lane::kDetail,
                    .reasons = kLostRingFull | kLostReentry,
                    .before_seq = 9,
                    .lost = 11,
                    .numbered_lost = 11,
                    .first_ns = 12,
                    .last_ns = 13}};
  manifest.detail_windows = {{.mode = "on",
                              .start_ns = 14,
                              .end_ns = 15,
                              .pre_roll_from_ns = 16,
                              .pre_roll_records = 17,
                              .reason = ""}};
  return manifest;
}

TEST(CollectorMessagesTest, ManifestIsShownWhole) {
  const auto shown =
      manifest_message("session_1/pid_7", storage::manifest_to_json(full_manifest()));
  ASSERT_TRUE(shown.ok()) << to_string(shown.error());
  EXPECT_EQ(shown->session(), "sessions/session_1/pid_7");
  EXPECT_EQ(shown->format_version_major(), 2u);
  EXPECT_EQ(shown->format_version_minor(), 1u);
  EXPECT_EQ(shown->state(), "recovered");
  EXPECT_EQ(shown->time_start_ns(), 10u);
  EXPECT_EQ(shown->time_end_ns(), 20u);
  EXPECT_EQ(shown->symbol_count(), 1u);
  ASSERT_EQ(shown->threads_size(), 1);
  EXPECT_EQ(shown->threads(0).id(), 1u);
  EXPECT_EQ(shown->threads(0).thread_id(), 4711u);
  EXPECT_EQ(shown->threads(0).name(), "worker");
  EXPECT_TRUE(shown->threads(0).has_detail());
  EXPECT_EQ(shown->threads(0).events(), 2u);
  EXPECT_EQ(shown->threads(0).detail_records(), 3u);
  EXPECT_EQ(shown->threads(0).lost_events(), 4u);
  EXPECT_EQ(shown->threads(0).lost_detail_records(), 5u);
  ASSERT_EQ(shown->modules_size(), 1);
  EXPECT_EQ(shown->modules(0).module_id(), 6u);
  EXPECT_EQ(shown->modules(0).path(), "/lib/a.so");
  EXPECT_EQ(shown->modules(0).build_id(), "ab0c");
  EXPECT_EQ(shown->modules(0).base_address(), 0x7000u);
  EXPECT_EQ(shown->modules(0).size_bytes(), 8u);
  ASSERT_EQ(shown->gaps_size(), 1);
  EXPECT_EQ(shown->gaps(0).thread(), 1u);
  EXPECT_EQ(shown->gaps(0).lane(), "detail");
  EXPECT_EQ(shown->gaps(0).before_seq(), 9u);
  EXPECT_EQ(shown->gaps(0).lost(), 11u);
  EXPECT_EQ(shown->gaps(0).first_ns(), 12u);
  EXPECT_EQ(shown->gaps(0).last_ns(), 13u);
  EXPECT_EQ(shown->gaps(0).reason(), "ring_full, reentry");
  ASSERT_EQ(shown->detail_windows_size(), 1);
  EXPECT_EQ(shown->detail_windows(0).mode(), "on");
  EXPECT_EQ(shown->detail_windows(0).start_ns(), 14u);
  EXPECT_EQ(shown->detail_windows(0).end_ns(), 15u);
  EXPECT_EQ(shown->detail_windows(0).pre_roll_from_ns(), 16u);
  EXPECT_EQ(shown->detail_windows(0).pre_roll_records(), 17u);
}

TEST(CollectorMessagesTest, RejectsDamagedManifest) {
  EXPECT_EQ(manifest_message("s", "{").code(), Code::kDamaged);
}

}  // namespace
}  // namespace collect::daemon
