// A structured fuzzer of the agent protocol against the live daemon: peers that speak it nearly
// right. Their frames are those of an agent, in an order that is nearly an agent's, some of them
// changed in a few bytes, with checksums put right again so that the change gets past them.
//
// COLLECT_STORM_SECONDS (default 10) and COLLECT_STORM_SEED say how long and which; the seed is
// printed. What a run does depends on the seed and on how the threads are scheduled.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "formats/core/bytes.h"
#include "formats/core/crc32.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/e2e/redteam/hostile_frames.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kWitness = 4'300'000;  // above the largest pid that Linux gives out
constexpr uint32_t kFirstPid = 4'300'001;
constexpr uint32_t kProcesses = 6;  // so that peers meet sessions of others, and their own
constexpr unsigned kThreads = 4;
constexpr uint64_t kMemoryGrowth = 256u << 20;  // read buffers alone may hold that much

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

// What the collector gave to each process: peers come as one another's.
class Keys {
 public:
  std::string of(const std::string& process) {
    std::lock_guard lock(mutex_);
    return keys_[process];
  }
  void keep(const std::string& process, const std::string& key) {
    std::lock_guard lock(mutex_);
    keys_[process] = key;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> keys_;
};
Keys keys;

class Peer {
 public:
  Peer(uint64_t seed, uint16_t port) : random_(seed), port_(port) {}

  uint64_t frames() const { return frames_; }

  // One life of a peer: the hellos, then frames until it has said enough or is shut out.
  void live() {
    const uint32_t pid = kFirstPid + below(chance(20) ? 300 : kProcesses);
    const std::string id = "storm0123" + std::to_string(pid);  // 16 bytes
    RawConnection control(port_);
    if (!greet(control, wire::CHANNEL_CONTROL, pid, id)) return;
    RawConnection data(port_);
    if (!greet(data, wire::CHANNEL_DATA, pid, id)) return;
    recording_ = 1 + below(3);
    next_.assign(5, 0);
    const uint32_t length = 1 + below(60);
    for (uint32_t i = 0; i < length; ++i) {
      RawConnection& which = chance(20) ? control : data;
      const Octets frame = &which == &data ? changed(data_frame()) : changed(control_frame());
      ++frames_;
      if (!which.send(frame)) return;
    }
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t one_in) { return below(one_in) == 0; }

  bool greet(RawConnection& connection, wire::Channel channel, uint32_t pid,
             const std::string& id) {
    wire::Hello greeting = hello(channel, pid, id);
    if (chance(10)) greeting.set_recording(below(4));
    const auto answer = said(connection, wire::FrameType::kHello, greeting);
    wire::Challenge challenge;
    if (!answer || answer->type != wire::FrameType::kChallenge ||
        !challenge.ParseFromString(answer->body)) {
      return false;
    }
    auto next = said(connection, wire::FrameType::kProof,
                     fakes::proof_for(greeting, challenge, {"", keys.of(id)}, false));
    while (next && next->type == wire::FrameType::kResume) next = connection.receive();
    wire::Welcome welcome;
    if (!next || next->type != wire::FrameType::kWelcome || !welcome.ParseFromString(next->body)) {
      return false;
    }
    if (!welcome.resume_key().empty()) keys.keep(id, welcome.resume_key());
    return true;
  }

  // The message, changed now and then; what is answered to the right one.
  template <class Message>
  std::optional<ReceivedFrame> said(RawConnection& connection, wire::FrameType type,
                                    const Message& message) {
    const Octets right = frame_bytes(type, message.SerializeAsString());
    const Octets sent = changed(right);
    ++frames_;
    if (!connection.send(sent) || sent != right) return std::nullopt;
    return connection.receive();
  }

  template <class Message>
  Octets made(wire::FrameType type, const Message& message) {
    return frame_bytes(type, message.SerializeAsString());
  }

  Octets data_frame() {
    switch (below(12)) {
      case 0: {
        wire::RecordingStart start;
        start.set_recording(chance(8) ? below(5) : recording_);
        start.set_start_ns(random_());
        start.set_atf_version(2);
        return made(wire::FrameType::kRecordingStart, start);
      }
      case 1: {
        wire::Modules modules;
        for (uint32_t i = below(5); i > 0; --i) {
          wire::Module* module = modules.add_modules();
          module->set_module_id(below(chance(10) ? UINT32_MAX : 8));
          module->set_path("/lib/" + std::string(below(40), '.') + "/../x");
          module->set_build_id(std::string(below(70), 'b'));
          module->set_size(random_());
        }
        return made(wire::FrameType::kModules, modules);
      }
      case 2:
      case 3: {
        wire::StreamOpen open;
        open.set_recording(recording_);
        open.set_stream_id(stream());
        open.set_thread_id(below(chance(4) ? UINT32_MAX : 100));
        open.set_thread_name(std::string(below(80), static_cast<char>(below(128))));
        return made(wire::FrameType::kStreamOpen, open);
      }
      case 4: {
        const uint32_t id = stream();
        wire::StreamClose close;
        close.set_stream_id(id);
        close.set_index_count(next_[id] + (chance(3) ? below(1000) : 0));
        close.set_index_lost(chance(3) ? random_() : 0);
        return made(wire::FrameType::kStreamClose, close);
      }
      case 5: {
        wire::DetailState state;
        state.set_mode(static_cast<wire::DetailMode>(below(3)));
        state.set_at_ns(random_());
        return made(wire::FrameType::kDetailState, state);
      }
      case 6: {
        wire::RecordingEnd end;
        end.set_recording(recording_);
        end.mutable_process_end()->set_how(static_cast<wire::ProcessEnd::How>(below(5)));
        if (chance(2)) ++recording_;
        next_.assign(5, 0);
        return made(wire::FrameType::kRecordingEnd, end);
      }
      default:
        return page();
    }
  }

  Octets page() {
    const uint32_t id = stream();
    const uint32_t count = below(chance(5) ? 20'000 : 200);
    uint64_t first = next_[id];
    if (chance(6)) first += below(1000);
    if (chance(6)) first -= std::min<uint64_t>(first, below(1000));
    const Octets records = events(1000 + first, count);
    Octets bytes =
        chance(2) ? encoded_page_bytes(id, first, records) : page_bytes(id, first, records);
    next_[id] = first + count;
    return bytes;
  }

  Octets control_frame() {
    switch (below(3)) {
      case 0: {
        wire::Heartbeat beat;
        beat.set_recording(recording_);
        beat.set_lost_without_stream(random_());
        return made(wire::FrameType::kHeartbeat, beat);
      }
      case 1: {
        wire::ClockReply reply;
        reply.set_burst(below(3));
        reply.set_number(below(20));
        reply.set_t1_ns(random_());
        reply.set_t2_ns(random_());
        reply.set_t3_ns(random_());
        return made(wire::FrameType::kClockReply, reply);
      }
      default: {
        wire::CommandResult result;
        result.set_command_id(below(4));
        result.set_ok(chance(2));
        return made(wire::FrameType::kCommandResult, result);
      }
    }
  }

  uint32_t stream() { return 1 + below(4); }

  // The frame as it is, mostly; else with some bytes changed, where it gets furthest.
  Octets changed(Octets frame) {
    if (!chance(6)) return frame;
    const size_t head = sizeof(wire::FrameHeader);
    const uint32_t how = below(5);
    if (how == 0) {  // anywhere, and the checksums tell
      frame[below(static_cast<uint32_t>(frame.size()))] ^= static_cast<uint8_t>(1 + below(255));
      return frame;
    }
    if (how == 1) {  // it breaks off
      frame.resize(below(static_cast<uint32_t>(frame.size())));
      return frame;
    }
    if (how == 2) {  // another type, or another length
      store_le(frame.data() + (chance(2) ? 4 : 8), static_cast<uint16_t>(below(64)));
      seal_header(frame);
      return frame;
    }
    const bool is_page =
        load_le<uint16_t>(frame.data() + 4) == static_cast<uint16_t>(wire::FrameType::kPage);
    const size_t body = is_page ? sizeof(PageHeader) : frame.size() - head;
    for (uint32_t i = 1 + below(4); i > 0 && frame.size() > head; --i) {
      frame[head + below(static_cast<uint32_t>(frame.size() - head))] =
          static_cast<uint8_t>(chance(3) ? 0xff : random_());
    }
    if (is_page) {
      const Bytes records = Bytes(frame).subspan(head + sizeof(PageHeader));
      store_le(frame.data() + head + offsetof(PageHeader, bytes_crc32c), crc32c(records));
    }
    store_le(frame.data() + 12, crc32c(Bytes(frame).subspan(head, body)));
    seal_header(frame);
    return frame;
  }

  std::mt19937_64 random_;
  const uint16_t port_;
  uint32_t recording_ = 1;
  std::vector<uint64_t> next_;  // of each stream
  uint64_t frames_ = 0;
};

TEST(WireStorm, DaemonSurvivesAndEveryFileIsWhole) {
  const uint64_t limit_s = setting("COLLECT_STORM_SECONDS", 10);
  const uint64_t seed = setting("COLLECT_STORM_SEED", 20'260'101);
  Scratch scratch;
  CollectorProcess collector(
      scratch, {"--resume-ms", "200", "--heartbeat-ms", "60000", "--seal-at-stop", "true",
                "--sessions-per-agent", "1000000", "--log-level", "error"});
  RawAgent witness(collector.ingest_port(), kWitness);
  ASSERT_TRUE(witness.ready);
  const uint64_t memory_before = collector.process().resident_bytes();
  std::atomic<bool> over{false};
  std::atomic<uint64_t> peers{0};
  std::atomic<uint64_t> frames{0};
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < kThreads; ++index) {
    threads.emplace_back([&, index] {
      for (uint64_t life = 0; !over; ++life) {
        Peer peer(seed + index + kThreads * life, collector.ingest_port());
        peer.live();
        peers += 1;
        frames += peer.frames();
      }
    });
  }
  uint64_t witnessed = 0;
  const auto end_at = std::chrono::steady_clock::now() + seconds(limit_s);
  while (std::chrono::steady_clock::now() < end_at && collector.process().running()) {
    EXPECT_TRUE(witness.data.send(page_bytes(1, witnessed, events(1000 + witnessed, 100))));
    witnessed += 100;
    EXPECT_TRUE(witness.control.receive_ack(1, witnessed)) << "the witness is not served";
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  const uint64_t memory_after = collector.process().resident_bytes();
  std::printf(
      "seed %llu: %llu peers sent %llu frames in %llu s; the daemon grew by %lld KiB\n",
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(peers),
      static_cast<unsigned long long>(frames), static_cast<unsigned long long>(limit_s),
      (static_cast<long long>(memory_after) - static_cast<long long>(memory_before)) / 1024);
  ASSERT_TRUE(collector.process().running());
  EXPECT_LT(memory_after, memory_before + kMemoryGrowth);
  EXPECT_TRUE(collector.stop().exited_with(0)) << collector.process().errors();
  uint64_t verified = 0;
  for (const std::string& directory : session_directories(collector.root())) {
    const RecordedSession session(directory);
    EXPECT_NE(session.state(), "recording") << directory;
    if (session.manifest()["process"].value("pid", 0u) == kWitness) {
      EXPECT_EQ(session.totals().events, witnessed) << "the witness lost something";
    }
    const Ending ending =
        run(scratch.path(), {program("collectctl"), "verify", "--allow-incomplete", directory});
    EXPECT_TRUE(ending.exited_with(0)) << directory << ending.output << ending.errors;
    ++verified;
  }
  std::printf("%llu sessions verified\n", static_cast<unsigned long long>(verified));
}

}  // namespace
}  // namespace collect::e2e
