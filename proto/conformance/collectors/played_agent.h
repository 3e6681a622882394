// An agent that checks a collector: it sends what a check says, answers what a collector may
// expect of every agent, and keeps what came. On the caller's thread; every wait has a bound.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/conformance/collectors/sent_records.h"
#include "proto/conformance/frame_link.h"

namespace collect::conformance {

struct Target {
  Address address;
  Settings settings;
};

class PlayedAgent {
 public:
  // What came on one channel since it was connected.
  struct Channel {
    FrameLink link;
    std::string nonce;
    std::optional<wire::Challenge> challenge;
    std::optional<wire::Welcome> welcome;
    std::optional<wire::Refuse> refuse;
    bool is_over = false;  // ended by the collector, or what it sent is no frame
    std::string fault;     // of what it sent: a sentence
  };
  // What the control channel brought.
  struct Brought {
    std::map<uint32_t, wire::StreamPosition> acked;
    std::string ack_fault;  // a position that shrank, or is beyond what was sent
    uint32_t ack_frames = 0;
    uint32_t recording_ended = 0;
    uint32_t recording_ended_count = 0;
    uint64_t stalls_next = 0;
    std::vector<wire::ClockProbe> probes;
    std::vector<Clock::time_point> frames_at;
    bool bye = false;
  };

  explicit PlayedAgent(const Target& target);

  // Both channels to their Welcome. An error says which step failed.
  Status open();
  Status open_channel(wire::Channel channel);
  // Connects, and sends nothing yet; the Hello that will follow.
  Status connect(wire::Channel channel, const wire::Hello& hello);
  // Connects and sends the Hello alone.
  Status say_hello(wire::Channel channel, const wire::Hello& hello);
  wire::Hello hello(wire::Channel channel) const;
  // Waits for the Challenge and answers it.
  Status prove(wire::Channel channel);
  wire::Proof proof(wire::Channel channel) const;
  Status expect_welcome(wire::Channel channel);
  // open(), RecordingStart 1, a module and stream 1.
  Status record();

  bool start_recording(uint32_t recording);
  bool send_module();
  bool open_stream(uint32_t stream);
  bool send_page(uint32_t stream, uint64_t first_seq, uint32_t count);
  bool send_encoded(const PageHeader& page, Bytes sent);
  bool close_stream(uint32_t stream, uint64_t index_count, uint64_t index_lost = 0);
  bool end_recording();
  bool send_bye();
  void drop();  // closes both

  // Serves both channels until this holds. False: the bound came first.
  bool wait(const std::function<bool()>& holds, milliseconds bound);
  bool wait(const std::function<bool()>& holds) { return wait(holds, target_.settings.timeout); }
  bool wait_stored(uint32_t stream, uint64_t index_next);
  bool wait_over(wire::Channel channel);

  // The verdict on a collector that had to refuse and close this channel.
  Verdict refused(wire::Channel channel, wire::RefuseCode code);
  // The verdict on one that had to continue: a frame must come that a live control channel has.
  Verdict goes_on();

  Channel& channel(wire::Channel which) { return which == wire::CHANNEL_CONTROL ? control : data; }

  Channel control;
  Channel data;
  Brought brought;
  std::vector<wire::StreamPosition> resumed;  // of the last data channel
  std::string resume_key;
  std::string process_id;
  bool is_silent = false;  // sends no heartbeats and no clock replies

 private:
  void serve(milliseconds bound);
  void take_all(wire::Channel which);
  void on_frame(wire::Channel which, const ReceivedFrame& frame);
  void on_control(const ReceivedFrame& frame);
  void on_ack(const wire::Ack& ack);
  void answer(const wire::ClockProbe& probe);
  void beat();

  const Target target_;
  std::map<uint32_t, uint64_t> sent_;  // by stream: the number after the last record
  Clock::time_point beat_at_{};
};

}  // namespace collect::conformance
