// An agent of the simulation: speaks WIRE.md over a socket that no one waits for, holds
// unacknowledged records in a ring that may be full, and goes from one collector to another as the
// real one does, with the real one's list of collectors. It is no program that records: its records
// are a function of their numbers, so that a reader knows what each must be.
//
// One thread: that of the simulation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "agent/drain/link/collector_list.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/wire.pb.h"

namespace collect::fleet {

using ProcessId = std::array<uint8_t, 16>;

struct AgentSettings {
  uint32_t threads = 2;
  uint32_t events_per_s = 10;      // of each thread
  uint64_t ring_events = 100'000;  // of each thread: what is not acknowledged
  uint64_t tick_ns = 1'000'000'000;
  uint32_t probe_bursts = 2;  // of each connection that are answered; later ones stay unanswered
};

// The device's clock: what it says is off by an offset, and runs too fast or too slow.
struct DeviceClock {
  int64_t offset_ns = 0;
  int32_t drift_ppb = 0;
  int64_t wall_error_ns = 0;
  uint64_t at(uint64_t now_ns) const;
};

// What one thread recorded, as the agent alone knows it.
struct StreamTruth {
  uint64_t numbered = 0;
  uint64_t dropped = 0;  // the ring was full: these have no number
  uint64_t acknowledged = 0;
};

enum class RunEnd : uint8_t {
  kRunning,
  kAcknowledged,  // a collector said that the recording is whole and sealed
  kGaveUp,        // the program ended, and no collector was there for so long
};

// One run of the traced program: one process with one recording.
struct Run {
  ProcessId process{};
  uint32_t agent = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  DeviceClock clock{};
  uint32_t events_per_s = 0;
  RunEnd end = RunEnd::kRunning;
  std::vector<StreamTruth> streams{};  // stream id - 1
};

// The record with this number, as it is in the file.
void write_record(const Run& run, uint64_t number, uint8_t* out);

struct AgentCounters {
  uint64_t connects = 0;  // pairs that were welcomed
  uint64_t failed_connects = 0;
  uint64_t refusals = 0;
  std::string first_refusal{};
  uint64_t pages = 0;
};

class Agent {
 public:
  // What an agent needs of the simulation.
  struct Dependencies {
    int epoll = -1;
    // A collector may have something to do; its number is the end of its address.
    std::function<void(uint32_t collector)> touched{};
    std::function<void(Run)> finished{};
    AgentCounters counters{};
  };

  // `collectors` as COLLECT_CONNECT has them.
  Agent(Dependencies& dependencies, const AgentSettings& settings, uint32_t number, uint64_t seed,
        const std::string& collectors);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void set_clock(const DeviceClock& clock) { clock_ = clock; }
  // The program starts now; not while it runs.
  void begin_run(uint64_t duration_ns);
  bool is_running() const { return running_; }
  bool is_connected() const { return is_up(); }
  const Run& run() const { return run_; }
  // When wake() is to be called next; UINT64_MAX: nothing is to be done.
  uint64_t wake_at_ns() const { return wake_at_ns_; }
  void wake();
  // Of one of its sockets.
  void on_ready(uint32_t channel);
  bool has_unsent() const { return !channels_[0].out.empty() || !channels_[1].out.empty(); }
  void send_more();

 private:
  enum class Step : uint8_t { kClosed, kGreeted, kProving, kOpen };
  struct Channel {
    int handle = -1;
    Step step = Step::kClosed;
    wire::Hello hello;
    std::string collector_id;
    std::vector<uint8_t> in;
    std::vector<uint8_t> out;
  };
  // `total` records were dropped before record `number`.
  struct Loss {
    uint64_t number = 0;
    uint64_t total = 0;
  };
  struct Stream {
    uint64_t sent = 0;
    bool close_sent = false;
    bool closed = false;  // acknowledged
    std::vector<Loss> losses;
  };

  static constexpr uint32_t kControl = 0;
  static constexpr uint32_t kData = 1;

  bool is_up() const {
    return channels_[kControl].step == Step::kOpen && channels_[kData].step == Step::kOpen;
  }
  void produce();
  void connect();
  bool open_channel(uint32_t channel);
  void close_pair();
  void broke();
  void pause_before_next_try();
  void send(uint32_t channel, wire::FrameType type, const google::protobuf::MessageLite& message);
  void flush(uint32_t channel);
  bool take_frame(uint32_t channel, const wire::Frame& frame);
  bool take_control(const wire::Frame& frame);
  void take_challenge(uint32_t channel, const wire::Frame& frame);
  void take_welcome(uint32_t channel, const wire::Frame& frame);
  void take_position(const wire::StreamPosition& position, bool is_resume);
  void answer_probe(const wire::Frame& frame);
  void came_up();
  void refused(const wire::Frame& frame);
  void send_records();
  void send_page(uint32_t stream, uint64_t first, uint32_t count);
  void end_run(RunEnd end);
  void beat();

  Dependencies& dependencies_;
  const AgentSettings settings_;
  const uint32_t number_;
  std::mt19937_64 random_;
  agent::CollectorList collectors_;
  DeviceClock clock_;
  std::map<std::string, std::string> resume_keys_;  // by collector_id

  bool running_ = false;
  Run run_;
  std::vector<Stream> streams_;
  uint64_t wake_at_ns_ = UINT64_MAX;

  Channel channels_[2];
  uint32_t collector_ = 0;  // number of the one that is tried
  bool resumed_ = false;
  bool ends_ = false;  // the recording is acknowledged; Bye was sent
  bool end_sent_ = false;
  uint32_t attempts_ = 0;
  uint64_t retry_at_ns_ = 0;
  uint64_t down_since_ns_ = 0;
  uint64_t heartbeat_ns_ = 1'000'000'000;
  uint64_t beat_at_ns_ = 0;
  uint64_t heard_at_ns_ = 0;
  uint32_t last_burst_ = 0;
  uint32_t bursts_ = 0;  // on this connection
};

}  // namespace collect::fleet
