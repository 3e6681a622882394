#include "tests/fleet/agent.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "formats/atf/layout.h"
#include "formats/core/crc32.h"
#include "formats/core/result.h"
#include "proto/wire/layout.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/handshake.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

constexpr uint32_t kPageEvents = 2048;
constexpr uint64_t kFirstRetryNs = 50 * kNsPerMs;
constexpr uint64_t kLastRetryNs = 2'000 * kNsPerMs;
constexpr uint64_t kFlushLimitNs = 30 * kNsPerS;  // a program that ended waits so long
constexpr size_t kReadBytes = 64u << 10;
constexpr uint32_t kRecording = 1;
constexpr uint64_t kFunctions = 16;

template <class Message>
Message parsed(const wire::Frame& frame) {
  Message message;
  if (!message.ParseFromArray(frame.body.data(), static_cast<int>(frame.body.size()))) {
    message.Clear();
  }
  return message;
}

uint64_t record_ns(const Run& run, uint64_t number) {
  return run.clock.at(run.start_ns + number * kNsPerS / run.events_per_s);
}

}  // namespace

uint64_t DeviceClock::at(uint64_t now_ns) const {
  const auto now = static_cast<int64_t>(now_ns);
  return static_cast<uint64_t>(now + offset_ns +
                               static_cast<int64_t>(static_cast<double>(now) * 1e-9 * drift_ppb));
}

void write_record(const Run& run, uint64_t number, uint8_t* out) {
  atf::IndexEventV2 event{};
  event.timestamp_ns = record_ns(run, number);
  event.function_id = 0x1000 + (number / 2) % kFunctions;
  event.detail_seq = atf::kNoDetail;
  event.event_kind =
      static_cast<uint8_t>(number % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn);
  std::memcpy(out, &event, sizeof event);
}

Agent::Agent(Dependencies& dependencies, const AgentSettings& settings, uint32_t number,
             uint64_t seed, const std::string& collectors)
    : dependencies_(dependencies), settings_(settings), number_(number), random_(seed) {
  COLLECT_CHECK(collectors_.prepare(collectors.c_str()) == nullptr);
}

Agent::~Agent() {
  close_pair();
}

void Agent::begin_run(uint64_t duration_ns) {
  COLLECT_CHECK(!running_);
  running_ = true;
  run_ = Run{};
  for (uint8_t& byte : run_.process) byte = static_cast<uint8_t>(random_());
  run_.agent = number_;
  run_.start_ns = SimulatedTime::now_ns();
  run_.end_ns = run_.start_ns + duration_ns;
  run_.clock = clock_;
  run_.events_per_s = settings_.events_per_s;
  run_.streams.resize(settings_.threads);
  streams_.assign(settings_.threads, {});
  resume_keys_.clear();
  attempts_ = 0;
  retry_at_ns_ = down_since_ns_ = run_.start_ns;
  ends_ = false;
  wake();
}

void Agent::end_run(RunEnd end) {
  close_pair();
  run_.end = end;
  running_ = false;
  wake_at_ns_ = UINT64_MAX;
  dependencies_.finished(std::move(run_));
}

void Agent::wake() {
  if (!running_) return;
  produce();
  const uint64_t now = SimulatedTime::now_ns();
  if (is_up()) {
    if (now - heard_at_ns_ > 3 * heartbeat_ns_) broke();
  } else if (now - down_since_ns_ > kFlushLimitNs && now > run_.end_ns + kFlushLimitNs) {
    end_run(RunEnd::kGaveUp);
    return;
  }
  if (channels_[kControl].step == Step::kClosed && now >= retry_at_ns_) connect();
  if (is_up()) {
    send_records();
    beat();
  }
  if (!running_) return;
  wake_at_ns_ = SimulatedTime::now_ns() + settings_.tick_ns;
  if (now < run_.end_ns) wake_at_ns_ = std::min(wake_at_ns_, run_.end_ns);
  if (channels_[kControl].step == Step::kClosed) {
    wake_at_ns_ = std::min(wake_at_ns_, std::max(retry_at_ns_, now + kNsPerMs));
  }
}

void Agent::produce() {
  const uint64_t now = std::min(SimulatedTime::now_ns(), run_.end_ns);
  const uint64_t due = (now - run_.start_ns) / kNsPerMs * settings_.events_per_s / 1'000;
  for (uint32_t i = 0; i < settings_.threads; ++i) {
    StreamTruth& truth = run_.streams[i];
    const uint64_t made = truth.numbered + truth.dropped;
    const uint64_t fresh = due - std::min(due, made);
    const uint64_t room = settings_.ring_events - (truth.numbered - truth.acknowledged);
    truth.numbered += std::min(fresh, room);
    if (fresh <= room) continue;
    truth.dropped += fresh - room;
    std::vector<Loss>& losses = streams_[i].losses;
    if (losses.empty() || losses.back().number != truth.numbered) {
      losses.push_back({truth.numbered, truth.dropped});
    }
    losses.back().total = truth.dropped;
  }
}

void Agent::connect() {
  while (true) {
    collector_ =
        static_cast<uint32_t>(std::strtoul(std::strrchr(collectors_.text(), '-') + 1, nullptr, 10));
    if (open_channel(kControl)) return;
    ++dependencies_.counters.failed_connects;
    if (!collectors_.try_next_address()) continue;
    pause_before_next_try();
    return;
  }
}

bool Agent::open_channel(uint32_t index) {
  Channel& channel = channels_[index];
  const agent::Address& address = collectors_.address();
  channel.handle =
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  COLLECT_CHECK(channel.handle >= 0);
  if (::connect(channel.handle, reinterpret_cast<const sockaddr*>(&address.storage),
                address.bytes) != 0) {
    ::close(channel.handle);
    channel.handle = -1;
    return false;
  }
  epoll_event event{EPOLLIN, {.u64 = uint64_t{number_} << 1 | index}};
  COLLECT_CHECK(::epoll_ctl(dependencies_.epoll, EPOLL_CTL_ADD, channel.handle, &event) == 0);
  wire::Hello& hello = channel.hello;
  hello.Clear();
  hello.set_channel(index == kControl ? wire::CHANNEL_CONTROL : wire::CHANNEL_DATA);
  hello.set_min_version(wire::kProtocolVersion);
  hello.set_max_version(wire::kProtocolVersion);
  hello.set_process_id(std::string(run_.process.begin(), run_.process.end()));
  hello.set_nonce(fakes::fresh_nonce());
  hello.set_os(wire::OS_LINUX);
  hello.set_arch(wire::ARCH_X86_64);
  hello.set_pid(1'000 + number_);
  hello.set_parent_pid(1);
  hello.set_process_name("simulated");
  hello.set_device_id("device-" + std::to_string(number_));
  hello.set_boot_id("boot of " + std::to_string(number_));
  hello.set_clock_type(3);
  hello.set_atf_version(2);
  hello.set_agent_version("simulated");
  hello.set_executable("/bin/simulated");
  hello.set_recording(kRecording);
  hello.set_is_recording(SimulatedTime::now_ns() < run_.end_ns);
  channel.step = Step::kGreeted;
  send(index, wire::FrameType::kHello, hello);
  return true;
}

void Agent::close_pair() {
  for (Channel& channel : channels_) {
    if (channel.handle >= 0) ::close(channel.handle);
    channel.handle = -1;
    channel.step = Step::kClosed;
    channel.in.clear();
    channel.out.clear();
  }
  dependencies_.touched(collector_);
}

// As the real one's Link: a link that was up is tried again where it was, after a pause; one that
// never was, at the next collector, and only a whole round of them makes a pause.
void Agent::broke() {
  const bool was_up = is_up();
  close_pair();
  const uint64_t now = SimulatedTime::now_ns();
  if (was_up) {
    down_since_ns_ = now;
    attempts_ = 0;
    pause_before_next_try();
  } else if (collectors_.try_next_collector()) {
    pause_before_next_try();
  } else {
    retry_at_ns_ = now;
  }
  wake_at_ns_ = std::min(wake_at_ns_, retry_at_ns_);
}

void Agent::pause_before_next_try() {
  const uint64_t longest = std::min(kFirstRetryNs << std::min(attempts_, 10u), kLastRetryNs);
  ++attempts_;
  retry_at_ns_ = SimulatedTime::now_ns() + longest / 2 + random_() % (longest / 2 + 1);
}

void Agent::send(uint32_t index, wire::FrameType type,
                 const google::protobuf::MessageLite& message) {
  const std::vector<uint8_t> frame = fakes::frame_bytes(type, message);
  Channel& channel = channels_[index];
  channel.out.insert(channel.out.end(), frame.begin(), frame.end());
  flush(index);
}

void Agent::flush(uint32_t index) {
  Channel& channel = channels_[index];
  size_t sent = 0;
  while (sent < channel.out.size()) {
    const ssize_t count =
        ::send(channel.handle, channel.out.data() + sent, channel.out.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) break;  // full, or broken, which reading will show
    sent += static_cast<size_t>(count);
  }
  channel.out.erase(channel.out.begin(), channel.out.begin() + static_cast<ptrdiff_t>(sent));
  if (channel.out.empty()) channel.out.shrink_to_fit();
  if (sent != 0) dependencies_.touched(collector_);
}

void Agent::send_more() {
  for (const uint32_t index : {kControl, kData}) {
    if (!channels_[index].out.empty()) flush(index);
  }
  if (running_ && is_up()) send_records();
}

void Agent::on_ready(uint32_t index) {
  Channel& channel = channels_[index];
  if (channel.handle < 0) return;  // closed by an event before this one
  uint8_t block[kReadBytes];
  const ssize_t count = ::recv(channel.handle, block, sizeof block, 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count > 0) channel.in.insert(channel.in.end(), block, block + count);
  size_t read = 0;
  while (channel.handle >= 0) {
    wire::Frame frame;
    const wire::Decoded decoded =
        wire::decode_frame(Bytes(channel.in).subspan(read), &crc32c, frame);
    COLLECT_CHECK(decoded.status != wire::DecodeStatus::kBad);
    if (decoded.status != wire::DecodeStatus::kFrame) break;
    read += frame.frame_bytes;
    if (!take_frame(index, frame)) return;  // the pair is closed, and what it had read is gone
  }
  channel.in.erase(channel.in.begin(), channel.in.begin() + static_cast<ptrdiff_t>(read));
  if (channel.in.empty()) channel.in.shrink_to_fit();
  if (count > 0) return;
  if (ends_) {
    end_run(RunEnd::kAcknowledged);
  } else {
    broke();
  }
}

// False: the pair is closed.
bool Agent::take_frame(uint32_t index, const wire::Frame& frame) {
  heard_at_ns_ = SimulatedTime::now_ns();
  switch (frame.type) {
    case wire::FrameType::kChallenge:
      take_challenge(index, frame);
      return true;
    case wire::FrameType::kResume: {
      const auto resume = parsed<wire::Resume>(frame);
      for (const auto& position : resume.positions()) take_position(position, true);
      return true;
    }
    case wire::FrameType::kWelcome:
      take_welcome(index, frame);
      return channels_[kControl].handle >= 0;
    case wire::FrameType::kRefuse:
      refused(frame);
      return false;
    case wire::FrameType::kBye:
      broke();
      return false;
    default:
      return take_control(frame);
  }
}

bool Agent::take_control(const wire::Frame& frame) {
  if (frame.type == wire::FrameType::kClockProbe) answer_probe(frame);
  if (frame.type != wire::FrameType::kAck) return true;
  const auto ack = parsed<wire::Ack>(frame);
  for (const auto& position : ack.positions()) take_position(position, false);
  if (ack.recording_ended() == kRecording) {
    ends_ = true;
    wire::Bye bye;
    bye.set_reason("exit");
    send(kControl, wire::FrameType::kBye, bye);
  }
  return true;
}

void Agent::take_challenge(uint32_t index, const wire::Frame& frame) {
  Channel& channel = channels_[index];
  const auto challenge = parsed<wire::Challenge>(frame);
  channel.collector_id = challenge.collector_id();
  channel.step = Step::kProving;
  send(index, wire::FrameType::kProof,
       fakes::proof_for(channel.hello, challenge, {"", resume_keys_[channel.collector_id]}, false));
}

void Agent::take_welcome(uint32_t index, const wire::Frame& frame) {
  Channel& channel = channels_[index];
  const auto welcome = parsed<wire::Welcome>(frame);
  channel.step = Step::kOpen;
  heartbeat_ns_ = uint64_t{welcome.heartbeat_ms()} * kNsPerMs;
  if (!welcome.resume_key().empty()) resume_keys_[channel.collector_id] = welcome.resume_key();
  if (index == kControl) {
    for (uint32_t i = 0; i < settings_.threads; ++i) {
      streams_[i].sent = run_.streams[i].acknowledged;
      streams_[i].close_sent = false;
    }
    end_sent_ = false;
    if (!open_channel(kData)) broke();
    return;
  }
  resumed_ = welcome.resumed();
  came_up();
}

// A resumed stream continues where the collector is, but not before what the agent still holds.
void Agent::take_position(const wire::StreamPosition& position, bool is_resume) {
  const uint32_t index = position.stream_id() - 1;
  if (index >= settings_.threads) return;
  Stream& stream = streams_[index];
  StreamTruth& truth = run_.streams[index];
  const uint64_t most = is_resume ? truth.numbered : stream.sent;
  truth.acknowledged = std::max(truth.acknowledged, std::min(position.index_next(), most));
  stream.closed |= position.closed();
  if (is_resume) stream.sent = truth.acknowledged;
}

void Agent::answer_probe(const wire::Frame& frame) {
  const auto probe = parsed<wire::ClockProbe>(frame);
  if (probe.burst() != last_burst_) {
    last_burst_ = probe.burst();
    ++bursts_;
  }
  if (bursts_ > settings_.probe_bursts) return;
  wire::ClockReply reply;
  reply.set_burst(probe.burst());
  reply.set_number(probe.number());
  reply.set_t1_ns(probe.t1_ns());
  reply.set_t2_ns(clock_.at(SimulatedTime::now_ns()));
  reply.set_t3_ns(reply.t2_ns());
  send(kControl, wire::FrameType::kClockReply, reply);
}

void Agent::refused(const wire::Frame& frame) {
  const auto refuse = parsed<wire::Refuse>(frame);
  if (dependencies_.counters.refusals++ == 0)
    dependencies_.counters.first_refusal = refuse.reason();
  const bool was_up = is_up();
  broke();
  if (was_up && !collectors_.try_next_collector()) retry_at_ns_ = SimulatedTime::now_ns();
  wake_at_ns_ = std::min(wake_at_ns_, retry_at_ns_);
}

// What explains the records comes before them; repeats are ignored.
void Agent::came_up() {
  ++dependencies_.counters.connects;
  collectors_.came_up();
  attempts_ = 0;
  bursts_ = 0;
  last_burst_ = 0;
  beat_at_ns_ = 0;
  wire::RecordingStart start;
  start.set_recording(kRecording);
  start.set_start_ns(run_.clock.at(run_.start_ns));
  start.set_start_unix_ns(static_cast<uint64_t>(static_cast<int64_t>(SimulatedTime::unix_ns()) +
                                                run_.clock.wall_error_ns));
  start.set_atf_version(2);
  send(kData, wire::FrameType::kRecordingStart, start);
  wire::Modules modules;
  wire::Module& module = *modules.add_modules();
  module.set_path("/bin/simulated");
  module.set_build_id("simulated build");
  module.set_base_address(0x400000);
  module.set_size(0x10000);
  send(kData, wire::FrameType::kModules, modules);
  for (uint32_t i = 0; i < settings_.threads; ++i) {
    if (streams_[i].closed) continue;
    wire::StreamOpen open;
    open.set_recording(kRecording);
    open.set_stream_id(i + 1);
    open.set_thread_id(100 + i);
    open.set_thread_name("thread " + std::to_string(i));
    open.set_start_ns(run_.clock.at(run_.start_ns));
    send(kData, wire::FrameType::kStreamOpen, open);
  }
  send_records();
  beat();
}

void Agent::send_records() {
  const bool is_over = SimulatedTime::now_ns() >= run_.end_ns;
  bool all_closed = true;
  for (uint32_t i = 0; i < settings_.threads; ++i) {
    Stream& stream = streams_[i];
    const StreamTruth& truth = run_.streams[i];
    if (stream.closed) continue;
    while (stream.sent < truth.numbered && channels_[kData].out.empty()) {
      uint64_t end = std::min(truth.numbered, stream.sent + kPageEvents);
      for (const Loss& loss : stream.losses) {
        if (loss.number > stream.sent) end = std::min(end, loss.number);
      }
      send_page(i, stream.sent, static_cast<uint32_t>(end - stream.sent));
      stream.sent = end;
    }
    if (is_over && !stream.close_sent && stream.sent == truth.numbered) {
      wire::StreamClose close;
      close.set_stream_id(i + 1);
      close.set_end_ns(run_.clock.at(run_.end_ns));
      close.set_index_count(truth.numbered);
      close.set_index_lost(truth.dropped);
      send(kData, wire::FrameType::kStreamClose, close);
      stream.close_sent = true;
    }
    all_closed &= stream.close_sent;
  }
  if (!is_over || !all_closed || end_sent_) return;
  end_sent_ = true;
  wire::RecordingEnd end;
  end.set_recording(kRecording);
  end.set_end_ns(run_.clock.at(run_.end_ns));
  end.set_reason("exit");
  send(kData, wire::FrameType::kRecordingEnd, end);
}

void Agent::send_page(uint32_t stream, uint64_t first, uint32_t count) {
  std::vector<uint8_t> records(size_t{count} * atf::kEventBytes);
  for (uint32_t i = 0; i < count; ++i) {
    write_record(run_, first + i, records.data() + size_t{i} * atf::kEventBytes);
  }
  PageHeader page{};
  page.stream_id = stream + 1;
  page.first_seq = first;
  page.record_count = count;
  page.first_ns = record_ns(run_, first);
  page.last_ns = record_ns(run_, first + count - 1);
  for (const Loss& loss : streams_[stream].losses) {
    if (loss.number > first) break;
    page.lost_total = loss.total;
    if (loss.number != first) continue;
    page.lost_reasons = kLostRingFull;
    page.lost_first_ns = page.lost_last_ns = page.first_ns;
  }
  const std::vector<uint8_t> frame = fakes::page_frame_bytes(page, records);
  std::vector<uint8_t>& out = channels_[kData].out;
  out.insert(out.end(), frame.begin(), frame.end());
  ++dependencies_.counters.pages;
  flush(kData);
}

void Agent::beat() {
  const uint64_t now = SimulatedTime::now_ns();
  if (now < beat_at_ns_ || ends_) return;
  beat_at_ns_ = now + heartbeat_ns_ / 2;
  wire::Heartbeat beat;
  beat.set_detail(wire::DETAIL_OFF);
  send(kControl, wire::FrameType::kHeartbeat, beat);
}

}  // namespace collect::fleet
