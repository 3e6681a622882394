#include "tests/fakes/fake_agent.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "formats/atf/layout.h"
#include "tests/fakes/handshake.h"

namespace collect::fakes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kFirstEventNs = 1'000'000;
constexpr uint64_t kEventPaceNs = 1'000;
constexpr uint64_t kFunctionId = 0x1234;

}  // namespace

std::vector<uint8_t> index_events(uint64_t first_seq, uint32_t count) {
  std::vector<uint8_t> bytes(size_t{count} * atf::kEventBytes);
  for (uint32_t at = 0; at < count; ++at) {
    const uint64_t seq = first_seq + at;
    atf::IndexEventV2 event{};
    event.timestamp_ns = kFirstEventNs + seq * kEventPaceNs;
    event.function_id = kFunctionId + (seq / 2) % 16;
    event.detail_seq = atf::kNoDetail;
    event.event_kind =
        static_cast<uint8_t>(seq % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn);
    std::memcpy(bytes.data() + size_t{at} * atf::kEventBytes, &event, sizeof event);
  }
  return bytes;
}

PageHeader index_page_header(uint32_t stream, uint64_t first_seq, uint32_t count) {
  PageHeader page{};
  page.stream_id = stream;
  page.first_seq = first_seq;
  page.record_count = count;
  if (count != 0) {
    page.first_ns = kFirstEventNs + first_seq * kEventPaceNs;
    page.last_ns = kFirstEventNs + (first_seq + count - 1) * kEventPaceNs;
  }
  return page;
}

FakeAgent::FakeAgent(FakeProcess process) : process_(std::move(process)) {}

FakeAgent::~FakeAgent() {
  disconnect();
}

wire::Hello FakeAgent::hello(wire::Channel channel) const {
  wire::Hello hello;
  hello.set_channel(channel);
  hello.set_min_version(wire::kProtocolVersion);
  hello.set_max_version(wire::kProtocolVersion);
  hello.set_process_id(std::string(16, static_cast<char>(process_.id_byte)));
  hello.set_features(process_.features);
  hello.set_nonce(fresh_nonce());
  hello.set_os(wire::OS_LINUX);
  hello.set_arch(wire::ARCH_X86_64);
  hello.set_pid(process_.pid);
  hello.set_parent_pid(1);
  hello.set_process_name(process_.name);
  hello.set_device_id("device");
  hello.set_boot_id(process_.boot_id);
  hello.set_tag(process_.tag);
  hello.set_clock_type(3);
  hello.set_atf_version(2);
  hello.set_agent_version("fake");
  hello.set_executable(process_.executable);
  std::lock_guard lock(mutex_);
  hello.set_recording(recording_);
  hello.set_is_recording(is_recording_);
  return hello;
}

void FakeAgent::set_recording(uint32_t recording, bool is_recording) {
  std::lock_guard lock(mutex_);
  recording_ = recording;
  is_recording_ = is_recording;
}

bool FakeAgent::connect(const std::string& address) {
  disconnect();
  FrameSocket control = FrameSocket::connect(address);
  return control.is_open() && open_control(std::move(control)) &&
         open_data(FrameSocket::connect(address));
}

std::optional<ReceivedFrame> FakeAgent::introduce(FrameSocket& socket, wire::Channel channel,
                                                  bool dialled) {
  const wire::Hello greeting = hello(channel);
  if (!socket.send(wire::FrameType::kHello, greeting)) return std::nullopt;
  auto answer = socket.receive();
  if (!answer || answer->type != wire::FrameType::kChallenge) return answer;
  const wire::Proof proof = proof_for(greeting, answer->parsed<wire::Challenge>(),
                                      {process_.token, resume_key_}, dialled);
  if (!socket.send(wire::FrameType::kProof, proof)) return std::nullopt;
  return socket.receive();
}

bool FakeAgent::open_control(FrameSocket control, bool dialled) {
  const auto answer = introduce(control, wire::CHANNEL_CONTROL, dialled);
  if (!answer || answer->type != wire::FrameType::kWelcome) {
    std::lock_guard lock(mutex_);
    if (answer && answer->type == wire::FrameType::kRefuse)
      refusal_ = answer->parsed<wire::Refuse>();
    return false;
  }
  const auto welcome = answer->parsed<wire::Welcome>();
  heartbeat_ms_ = welcome.heartbeat_ms();
  if (!welcome.resume_key().empty()) resume_key_ = welcome.resume_key();
  {
    std::lock_guard lock(mutex_);
    control_over_ = false;
    bye_.reset();
    refusal_.reset();
  }
  control_ = std::move(control);
  stopping_ = false;
  control_thread_ = std::thread([this] { serve_control(); });
  return true;
}

bool FakeAgent::open_data(FrameSocket socket, bool dialled) {
  data_ = std::move(socket);
  resumed_.clear();
  auto frame = introduce(data_, wire::CHANNEL_DATA, dialled);
  for (; frame; frame = data_.receive()) {
    if (frame->type == wire::FrameType::kResume) {
      const auto resume = frame->parsed<wire::Resume>();
      for (const auto& position : resume.positions()) resumed_[position.stream_id()] = position;
    } else if (frame->type == wire::FrameType::kWelcome) {
      welcome_ = frame->parsed<wire::Welcome>();
      return true;
    } else {
      std::lock_guard lock(mutex_);
      if (frame->type == wire::FrameType::kRefuse) refusal_ = frame->parsed<wire::Refuse>();
      return false;
    }
  }
  return false;
}

void FakeAgent::disconnect() {
  stopping_ = true;
  if (control_thread_.joinable()) control_thread_.join();
  control_.close();
  data_.close();
}

bool FakeAgent::send_heartbeat(const wire::Heartbeat& beat) {
  const std::lock_guard lock(send_mutex_);
  return control_.send(wire::FrameType::kHeartbeat, beat);
}

bool FakeAgent::send_counter(const std::string& name, int64_t value, int64_t highest) {
  wire::Counters counters;
  counters.set_at_ns(device_now_ns());
  wire::Counter& counter = *counters.add_counters();
  counter.set_name(name);
  counter.set_value(value);
  counter.set_highest(highest);
  const std::lock_guard lock(send_mutex_);
  return control_.send(wire::FrameType::kCounters, counters);
}

bool FakeAgent::want_filter(const wire::Modules& modules, const std::string& only,
                            const std::string& except) {
  wire::WantFunctionFilter want;
  want.set_only(only);
  want.set_except(except);
  const std::lock_guard lock(send_mutex_);
  return (modules.modules_size() == 0 || control_.send(wire::FrameType::kModules, modules)) &&
         control_.send(wire::FrameType::kWantFunctionFilter, want);
}

void FakeAgent::say_goodbye(bool will_return) {
  wire::Bye bye;
  bye.set_reason("test");
  bye.set_will_return(will_return);
  {
    std::lock_guard lock(send_mutex_);
    control_.send(wire::FrameType::kBye, bye);
    // Closing at once could reset the connection under the Bye: probes may lie there unread.
    control_.end_sending();
  }
  (void)wait_control_end();
  disconnect();
}

// Wakes often enough to see that it is to stop, and to send heartbeats in time.
void FakeAgent::serve_control() {
  const auto pause = std::chrono::milliseconds(std::max(heartbeat_ms_ / 3, 1u));
  auto next_beat = Clock::now() + pause;
  while (!stopping_) {
    if (Clock::now() >= next_beat) {
      next_beat = Clock::now() + pause;
      wire::Heartbeat beat;
      beat.set_detail(detail_);
      std::lock_guard lock(send_mutex_);
      control_.send(wire::FrameType::kHeartbeat, beat);
    }
    const auto frame = control_.receive(std::chrono::milliseconds(10));
    if (frame) {
      handle(*frame);
    } else if (!control_.timed_out()) {
      break;
    }
  }
  std::lock_guard lock(mutex_);
  control_over_ = true;
  changed_.notify_all();
}

void FakeAgent::handle(const ReceivedFrame& frame) {
  if (frame.type == wire::FrameType::kClockProbe) {
    const uint64_t received_ns = device_now_ns();
    const auto probe = frame.parsed<wire::ClockProbe>();
    wire::ClockReply reply;
    reply.set_burst(probe.burst());
    reply.set_number(probe.number());
    reply.set_t1_ns(probe.t1_ns());
    reply.set_t2_ns(received_ns);
    reply.set_t3_ns(device_now_ns());
    std::lock_guard lock(send_mutex_);
    control_.send(wire::FrameType::kClockReply, reply);
    return;
  }
  if (frame.type == wire::FrameType::kCommand) {
    const auto command = frame.parsed<wire::Command>();
    wire::CommandResult result;
    result.set_command_id(command.command_id());
    result.set_ok(true);
    if (on_command_) on_command_(command, result);
    if (result.ok() && command.has_set_detail()) detail_ = command.set_detail().mode();
    std::lock_guard lock(send_mutex_);
    control_.send(wire::FrameType::kCommandResult, result);
    return;
  }
  std::lock_guard lock(mutex_);
  if (frame.type == wire::FrameType::kAck) {
    const auto ack = frame.parsed<wire::Ack>();
    for (const auto& position : ack.positions()) acked_[position.stream_id()] = position;
    stalls_next_ = std::max(stalls_next_, ack.stalls_next());
    if (ack.recording_ended() != 0) ended_.insert(ack.recording_ended());
  } else if (frame.type == wire::FrameType::kRefuse) {
    refusal_ = frame.parsed<wire::Refuse>();
  } else if (frame.type == wire::FrameType::kBye) {
    bye_ = frame.parsed<wire::Bye>();
  }
  changed_.notify_all();
}

bool FakeAgent::start_recording(uint32_t recording) {
  set_recording(recording, true);
  wire::RecordingStart start;
  start.set_recording(recording);
  start.set_start_ns(kFirstEventNs);
  start.set_start_unix_ns(1'700'000'000'000'000'000);
  start.set_atf_version(2);
  return data_.send(wire::FrameType::kRecordingStart, start);
}

bool FakeAgent::send_module(uint32_t id, const std::string& path) {
  wire::Modules modules;
  wire::Module* module = modules.add_modules();
  module->set_module_id(id);
  module->set_path(path);
  module->set_build_id("build-id");
  module->set_base_address(0x400000);
  module->set_size(0x1000);
  return data_.send(wire::FrameType::kModules, modules);
}

bool FakeAgent::open_stream(uint32_t stream, uint32_t thread) {
  wire::StreamOpen open;
  {
    std::lock_guard lock(mutex_);
    open.set_recording(recording_);
  }
  open.set_stream_id(stream);
  open.set_thread_id(thread);
  open.set_thread_name("thread " + std::to_string(thread));
  open.set_start_ns(kFirstEventNs);
  return data_.send(wire::FrameType::kStreamOpen, open);
}

bool FakeAgent::send_events(uint32_t stream, uint64_t first_seq, uint32_t count) {
  return data_.send_page(index_page_header(stream, first_seq, count),
                         index_events(first_seq, count));
}

bool FakeAgent::close_stream(uint32_t stream, uint64_t index_count, uint64_t index_lost) {
  wire::StreamClose close;
  close.set_stream_id(stream);
  close.set_thread_name("closed");
  close.set_end_ns(kFirstEventNs + index_count * kEventPaceNs);
  close.set_index_count(index_count);
  close.set_index_lost(index_lost);
  return data_.send(wire::FrameType::kStreamClose, close);
}

bool FakeAgent::end_recording(const std::string& reason) {
  wire::RecordingEnd end;
  {
    std::lock_guard lock(mutex_);
    end.set_recording(recording_);
    is_recording_ = false;
  }
  end.set_reason(reason);
  return data_.send(wire::FrameType::kRecordingEnd, end);
}

bool FakeAgent::wait_until(const std::function<bool()>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return holds(); });
}

bool FakeAgent::wait_stored(uint32_t stream, uint64_t index_next) {
  return wait_until([&] { return acked_[stream].index_next() >= index_next; });
}

bool FakeAgent::wait_stalls_stored(uint64_t next) {
  return wait_until([&] { return stalls_next_ >= next; });
}

bool FakeAgent::wait_closed(uint32_t stream) {
  return wait_until([&] { return acked_[stream].closed(); });
}

bool FakeAgent::wait_recording_ended(uint32_t recording) {
  return wait_until([&] { return ended_.contains(recording); });
}

bool FakeAgent::wait_refused() {
  return wait_until([&] { return refusal_.has_value(); });
}

bool FakeAgent::wait_control_end() {
  return wait_until([&] { return control_over_; });
}

std::optional<wire::Bye> FakeAgent::bye() const {
  std::lock_guard lock(mutex_);
  return bye_;
}

bool FakeAgent::wait_bye() {
  return wait_until([&] { return bye_.has_value(); });
}

std::optional<wire::Refuse> FakeAgent::refused() const {
  std::lock_guard lock(mutex_);
  return refusal_;
}

uint64_t FakeAgent::stored(uint32_t stream) const {
  std::lock_guard lock(mutex_);
  const auto found = acked_.find(stream);
  return found == acked_.end() ? 0 : found->second.index_next();
}

uint64_t FakeAgent::device_now_ns() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const uint64_t ours =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  return ours + static_cast<uint64_t>(process_.clock_ahead_ns);
}

}  // namespace collect::fakes
