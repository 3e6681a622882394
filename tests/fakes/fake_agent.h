// An agent that does what the test says: speaks WIRE.md from the agent's side over real sockets,
// with libprotobuf, and shares no code with agent/. The control channel is served by a thread of
// its own (heartbeats, clock probes, commands, acks); the data channel is driven by the test.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/frame_socket.h"

namespace collect::fakes {

struct FakeProcess {
  uint8_t id_byte = 1;  // the process id is this byte, 16 times
  uint32_t pid = 4711;
  std::string name = "fake";
  std::string token;
  std::string tag;
  uint64_t features = 0;
  std::string executable = "/bin/fake";
  std::string boot_id = "boot";
  int64_t clock_ahead_ns = 5'000'000'000;  // of the collector's CLOCK_BOOTTIME
};

// Index events of ATF version 2: calls and returns in turn, one a microsecond.
std::vector<uint8_t> index_events(uint64_t first_seq, uint32_t count);
PageHeader index_page_header(uint32_t stream, uint64_t first_seq, uint32_t count);

class FakeAgent {
 public:
  using OnCommand = std::function<void(const wire::Command&, wire::CommandResult&)>;

  explicit FakeAgent(FakeProcess process = {});
  ~FakeAgent();

  wire::Hello hello(wire::Channel channel) const;
  // What the next hello says.
  void set_recording(uint32_t recording, bool is_recording);
  // Called on the control thread; the result starts as ok. Set before connecting.
  void on_command(OnCommand handler) { on_command_ = std::move(handler); }

  // Both channels to the end of their handshake. False: refused() says why, or the link broke.
  bool connect(const std::string& address);
  // One channel, from its Hello to its Welcome; `dialled`: it was accepted and has sent Dial.
  // Control comes first.
  bool open_control(FrameSocket socket, bool dialled = false);
  bool open_data(FrameSocket socket, bool dialled = false);
  void disconnect();  // both, without a word
  void say_goodbye(bool will_return);
  // Besides those that come by themselves, and that say nothing.
  bool send_heartbeat(const wire::Heartbeat& beat);
  bool send_counter(const std::string& name, int64_t value, int64_t highest);
  // Asks for a filter, behind what is loaded.
  bool want_filter(const wire::Modules& modules, const std::string& only,
                   const std::string& except);

  // What the first control Welcome gave; empty before. A test may take it away or change it.
  std::string& resume_key() { return resume_key_; }
  // What the last data Welcome said.
  const wire::Welcome& welcome() const { return welcome_; }
  const std::map<uint32_t, wire::StreamPosition>& resumed() const { return resumed_; }
  std::optional<wire::Refuse> refused() const;

  // ---- data channel
  FrameSocket& data() { return data_; }
  bool start_recording(uint32_t recording);
  bool send_module(uint32_t id, const std::string& path);
  bool open_stream(uint32_t stream, uint32_t thread);
  bool send_events(uint32_t stream, uint64_t first_seq, uint32_t count);
  bool close_stream(uint32_t stream, uint64_t index_count, uint64_t index_lost = 0);
  bool end_recording(const std::string& reason = "exit");

  // ---- what the control channel brought; each waits for it, false when time is up
  bool wait_stored(uint32_t stream, uint64_t index_next);
  bool wait_closed(uint32_t stream);
  bool wait_stalls_stored(uint64_t next);
  bool wait_recording_ended(uint32_t recording);
  bool wait_refused();
  bool wait_control_end();
  bool wait_bye();
  std::optional<wire::Bye> bye() const;
  uint64_t stored(uint32_t stream) const;

 private:
  // Sends a hello and answers the challenge; the frame that comes then, empty at an end.
  std::optional<ReceivedFrame> introduce(FrameSocket& socket, wire::Channel channel, bool dialled);
  void serve_control();
  void handle(const ReceivedFrame& frame);
  bool wait_until(const std::function<bool()>& holds);
  uint64_t device_now_ns() const;

  const FakeProcess process_;
  OnCommand on_command_;
  std::string resume_key_;
  FrameSocket data_;
  wire::Welcome welcome_;
  std::map<uint32_t, wire::StreamPosition> resumed_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t recording_ = 0;                          // guarded by mutex_
  bool is_recording_ = false;                       // guarded by mutex_
  std::map<uint32_t, wire::StreamPosition> acked_;  // guarded by mutex_
  uint64_t stalls_next_ = 0;                        // guarded by mutex_
  std::set<uint32_t> ended_;                        // guarded by mutex_
  std::optional<wire::Refuse> refusal_;             // guarded by mutex_
  bool control_over_ = true;                        // guarded by mutex_
  std::optional<wire::Bye> bye_;                    // guarded by mutex_

  std::mutex send_mutex_;
  FrameSocket control_;  // read by the control thread; written with send_mutex_
  std::atomic<bool> stopping_{false};
  uint32_t heartbeat_ms_ = 100;
  wire::DetailMode detail_ = wire::DETAIL_OFF;  // of the control thread
  std::thread control_thread_;
};

}  // namespace collect::fakes
