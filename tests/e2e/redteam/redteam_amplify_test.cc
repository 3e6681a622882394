// A few bytes of a peer that would cost the daemon a thousand times as much: computing time, bytes
// on the disk, memory, reading.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"
#include "storage/session/live_manifest.h"
#include "tests/e2e/witness.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kAttacker = 4'700'000;  // above the largest that Linux gives out
constexpr uint32_t kWitness = kAttacker + 1;
constexpr uint32_t kPageEvents = 32'768;  // 1 MiB
constexpr uint64_t kMiB = 1u << 20;

uint64_t cpu_ns(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  EXPECT_EQ(clock_getcpuclockid(pid, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

// "rchar" or "wchar": bytes that the process has read or written by system calls on files.
uint64_t io_bytes(pid_t pid, const std::string& what) {
  std::ifstream io("/proc/" + std::to_string(pid) + "/io");
  std::string name;
  for (uint64_t value = 0; io >> name >> value;) {
    if (name == what + ":") return value;
  }
  ADD_FAILURE() << "no " << what;
  return 0;
}

// ---- chosen function ids

Octets events_of(const std::vector<uint64_t>& function_ids) {
  Octets bytes = events(1000, static_cast<uint32_t>(function_ids.size()));
  for (size_t at = 0; at < function_ids.size(); ++at) {
    store_le(bytes.data() + at * atf::kEventBytes + offsetof(atf::IndexEventV2, function_id),
             function_ids[at]);
  }
  return bytes;
}

// The processor time that the daemon takes until a page with these functions is stored.
uint64_t cost_of(CollectorProcess& collector, uint32_t pid, const std::vector<uint64_t>& ids) {
  RawAgent agent(collector.ingest_port(), pid);
  EXPECT_TRUE(agent.ready);
  const uint64_t before = cpu_ns(collector.process().pid());
  EXPECT_TRUE(agent.data.send(page_bytes(1, 0, events_of(ids))));
  EXPECT_TRUE(agent.control.receive_ack(1, ids.size()));
  return cpu_ns(collector.process().pid()) - before;
}

// Seen: ids that share a slot of the table of functions kept a writer thread busy for 13 s. They
// are made for the hash that the table had once, a multiplication, which has an inverse.
TEST(RedteamAmplify, ChosenFunctionIdsCostWhatAnyIdsCost) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--rtc", "false"});
  Witness witness(collector, kWitness);
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t inverse = 1;
  for (int round = 0; round < 6; ++round) inverse *= 2 - kMultiplier * inverse;
  std::vector<uint64_t> any;
  std::vector<uint64_t> chosen;
  for (uint64_t at = 1; at <= kPageEvents; ++at) {
    any.push_back((at << 32 | at) * 0x2545F4914F6CDD1D);
    chosen.push_back((uint64_t{7} << 32 | at) * inverse);
  }
  const uint64_t usual = cost_of(collector, kAttacker + 2, any);
  const uint64_t attack = cost_of(collector, kAttacker + 3, chosen);
  RecordProperty("usual_us", static_cast<int>(usual / 1000));
  RecordProperty("attack_us", static_cast<int>(attack / 1000));
  EXPECT_LT(attack, 5 * usual);
  witness.expect_whole();
}

// ---- manifests for nothing

// Seen: 2,560 bytes of stream ends caused a gigabyte of manifests.
TEST(RedteamAmplify, ManifestsAreWrittenAtABoundedPace) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--rtc", "false"});
  Witness witness(collector, kWitness);
  RawAgent attacker(collector.ingest_port(), kAttacker);
  ASSERT_TRUE(attacker.ready);
  constexpr uint32_t kThreads = 1'000;
  for (uint32_t stream = 2; stream <= kThreads; ++stream) {
    ASSERT_TRUE(open_stream(attacker.data, 1, stream, std::string(250, 'n')));
  }
  ASSERT_TRUE(attacker.data.send(page_bytes(kThreads, 0, events(1000, 1))));
  ASSERT_TRUE(attacker.control.receive_ack(kThreads, 1));
  const pid_t daemon = collector.process().pid();
  const uint64_t before = io_bytes(daemon, "wchar");
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed_ms = [began] {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::steady_clock::now() - began)
                                     .count());
  };
  uint32_t closed = 1;
  while (++closed < kThreads && elapsed_ms() < 6'000) {
    ASSERT_TRUE(close_stream(attacker.data, closed, 0));
    ASSERT_TRUE(attacker.control.receive_ack(closed, 0));
  }
  const uint64_t written = io_bytes(daemon, "wchar") - before;
  const std::string directory =
      session_directories(collector.root(), static_cast<int>(kAttacker)).at(0);
  const uint64_t one = std::filesystem::file_size(directory + "/manifest.json");
  RecordProperty("manifest_kib", static_cast<int>(one >> 10));
  RecordProperty("written_mib", static_cast<int>(written >> 20));
  RecordProperty("closed", static_cast<int>(closed));
  // What it takes longer it may write more: this is a rate.
  EXPECT_LT(written, storage::kManifestBurstBytes +
                         elapsed_ms() * storage::kManifestBytesPerSecond / 1000 + 8 * one);
  witness.expect_whole();
}

// ---- pages that become large

// Pages of one event over and over, encoded: as many as make so many bytes.
Octets bomb(size_t sent_bytes) {
  constexpr uint32_t kEvents = wire::kMaxEncodedPage / atf::kEventBytes;
  Octets records = events(1000, kEvents);
  for (uint32_t at = 0; at < kEvents; ++at) {
    store_le(records.data() + size_t{at} * atf::kEventBytes, uint64_t{1000});
  }
  const Octets first = encoded_page_bytes(1, 0, records);
  const Octets encoded(first.begin() + wire::kPagePrefixBytes, first.end());
  EXPECT_LT(100 * encoded.size(), records.size());
  PageHeader page{};
  page.stream_id = 1;
  page.codec = Codec::kColumns;
  page.record_count = kEvents;
  page.raw_bytes = static_cast<uint32_t>(records.size());
  page.first_ns = page.last_ns = 1000;
  Octets bytes;
  while (bytes.size() < sent_bytes) {
    const Octets frame = page_frame(page, encoded);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    page.first_seq += kEvents;
  }
  return bytes;
}

Octets raw_pages(uint32_t count) {
  Octets bytes;
  for (uint64_t page = 0; page < count; ++page) {
    const Octets frame =
        page_bytes(1, page * kPageEvents, events(1000 + page * kPageEvents, kPageEvents));
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  return bytes;
}

void limit_descriptors(pid_t pid, rlim_t soft) {
  rlimit limit{};
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
}

constexpr rlim_t kNone = 3;  // but those that are open already

// How much of `bytes` the daemon takes while its writer waits: a thread's files can't be opened.
size_t taken_while_writing_waits(CollectorProcess& collector, RawAgent& attacker,
                                 const Octets& bytes) {
  limit_descriptors(collector.process().pid(), kNone);
  EXPECT_TRUE(open_stream(attacker.data, 1, 2));
  const size_t taken = attacker.data.send_until_held(bytes, std::chrono::seconds(2));
  limit_descriptors(collector.process().pid(), RLIM_INFINITY);
  return taken;
}

// What the system keeps of a connection, both ends, and what the daemon reads at once.
constexpr size_t kUnderWay = 16 * kMiB;

// Seen: 440 KB of encoded pages became 210 MB. The queue has a bound in records, and the disk has
// one too.
TEST(RedteamAmplify, EncodedPagesAreHeldByWhatTheyBecome) {
  Scratch scratch;
  constexpr uint64_t kSessionBytes = 64 * kMiB;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--rtc", "false",
                                       "--max-session-bytes", std::to_string(kSessionBytes)});
  Witness witness(collector, kWitness);
  RawAgent attacker(collector.ingest_port(), kAttacker);
  ASSERT_TRUE(attacker.ready);
  const Octets bytes = bomb(32 * kMiB);
  const uint64_t resident = collector.process().resident_bytes();
  const size_t taken = taken_while_writing_waits(collector, attacker, bytes);
  RecordProperty("taken_kib", static_cast<int>(taken >> 10));
  EXPECT_LT(taken, kUnderWay);
  EXPECT_LT(collector.process().resident_bytes(), resident + 2 * kUnderWay);
  const auto refusal = attacker.control.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->reason().find("max_session_bytes"), std::string::npos) << refusal->reason();
  witness.expect_whole();
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kAttacker));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "failed");
  EXPECT_LE(std::filesystem::file_size(sessions[0].directory() + "/thread_0/index.atf"),
            kSessionBytes + kMiB);
}

TEST(RedteamAmplify, DoesNotReadPagesItCannotWrite) {
  constexpr uint32_t kPages = 48;
  const Octets bytes = raw_pages(kPages);
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000"});
  RawAgent attacker(collector.ingest_port(), kAttacker);
  ASSERT_TRUE(attacker.ready);
  const size_t taken = taken_while_writing_waits(collector, attacker, bytes);
  EXPECT_LT(taken, kUnderWay + 4 * kMiB);
  // Nothing was refused: it continues where it was held.
  ASSERT_TRUE(
      attacker.data.send(Octets(bytes.begin() + static_cast<ptrdiff_t>(taken), bytes.end())));
  EXPECT_TRUE(attacker.control.receive_ack(1, uint64_t{kPages} * kPageEvents));
}

// ---- recordings that are complete already

bool receive_recording_ended(RawConnection& control, uint32_t recording) {
  while (const auto frame = control.receive()) {
    wire::Ack ack;
    if (frame->type == wire::FrameType::kAck && ack.ParseFromString(frame->body) &&
        ack.recording_ended() == recording) {
      return true;
    }
  }
  return false;
}

// Seen: the manifests of a process's old sessions were read by a thread that writes, whenever a
// recording of it began: a second, and more.
TEST(RedteamAmplify, BeginningARecordingReadsNoManifest) {
  Scratch scratch;
  constexpr uint32_t kRecordings = 12;
  constexpr uint64_t kManifestBytes = kMiB;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--symbolize", "false"});
  {
    RawAgent agent(collector.ingest_port(), kAttacker);
    ASSERT_TRUE(agent.ready && close_stream(agent.data, 1, 0) && end_recording(agent.data, 1));
    for (uint32_t recording = 2; recording <= kRecordings; ++recording) {
      ASSERT_TRUE(start_recording(agent.data, recording) &&
                  open_stream(agent.data, recording, recording) &&
                  close_stream(agent.data, recording, 0) && end_recording(agent.data, recording));
    }
    ASSERT_TRUE(eventually(seconds(60), [&] {
      return session_directories(collector.root(), static_cast<int>(kAttacker)).size() ==
             kRecordings;
    }));
    ASSERT_EQ(sealed_sessions(collector.root(), static_cast<int>(kAttacker)).size(), kRecordings);
  }
  EXPECT_TRUE(collector.stop().exited_with(0));
  for (const std::string& directory : session_directories(collector.root())) {
    auto manifest = nlohmann::json::parse(read_text_file(directory + "/manifest.json"));
    manifest["padding"] = std::string(kManifestBytes, 'x');
    write_text_file(directory + "/manifest.json", manifest.dump());
  }
  collector.start_again();
  const pid_t daemon = collector.process().pid();
  ASSERT_TRUE(eventually(seconds(60), [&] {
    return io_bytes(daemon, "rchar") > kRecordings * kManifestBytes;
  })) << "the old sessions were not listed";
  const auto listed = [&] {
    return nlohmann::json::parse(collector.ctl({"--json", "sessions"}).output)["sessions"].size();
  };
  ASSERT_TRUE(eventually(seconds(60), [&] { return listed() == kRecordings; }));
  const uint64_t before = io_bytes(daemon, "rchar");
  Witness witness(collector, kWitness);
  // It begins with the first recording again, as after a break: that is known to be complete.
  RawAgent again(collector.ingest_port(), kAttacker);
  ASSERT_TRUE(again.ready && receive_recording_ended(again.control, 1));
  for (uint32_t recording = kRecordings + 1; recording <= kRecordings + 4; ++recording) {
    ASSERT_TRUE(start_recording(again.data, recording) &&
                open_stream(again.data, recording, recording) &&
                again.data.send(page_bytes(recording, 0, events(1000, 100))) &&
                again.control.receive_ack(recording, 100) &&
                close_stream(again.data, recording, 100) && end_recording(again.data, recording));
  }
  witness.record();
  EXPECT_LT(io_bytes(daemon, "rchar") - before, kManifestBytes);
  witness.expect_whole();
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kAttacker));
  EXPECT_EQ(sessions.size(), kRecordings + 4) << "the first one is not repeated";
}

}  // namespace
}  // namespace collect::e2e
