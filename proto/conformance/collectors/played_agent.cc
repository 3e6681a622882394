#include "proto/conformance/collectors/played_agent.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "proto/wire/proof.h"

namespace collect::conformance {
namespace {

constexpr uint64_t kBoottimeClock = 3;
constexpr uint32_t kAtfVersion = 2;

uint64_t device_ns() {
  timespec now{};
#if defined(CLOCK_BOOTTIME)
  ::clock_gettime(CLOCK_BOOTTIME, &now);
#else
  ::clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string made_proof(wire::ProofKind kind, const std::string& secret,
                       const wire::ProofContext& context) {
  if (secret.empty()) return {};
  std::string proof(wire::kProofBytes, '\0');
  wire::make_proof(kind, bytes_of(secret), context, reinterpret_cast<uint8_t*>(proof.data()));
  return proof;
}

}  // namespace

PlayedAgent::PlayedAgent(const Target& target)
    : process_id(random_bytes(wire::kProcessIdBytes)), target_(target) {}

wire::Hello PlayedAgent::hello(wire::Channel channel) const {
  wire::Hello hello;
  hello.set_channel(channel);
  hello.set_min_version(wire::kProtocolVersion);
  hello.set_max_version(wire::kProtocolVersion);
  hello.set_process_id(process_id);
  hello.set_os(wire::OS_LINUX);
  hello.set_arch(wire::ARCH_X86_64);
  hello.set_pid(static_cast<uint32_t>(::getpid()));
  hello.set_parent_pid(static_cast<uint32_t>(::getppid()));
  hello.set_process_name("conformance");
  hello.set_device_id("conformance");
  hello.set_tag("conformance");
  hello.set_clock_type(kBoottimeClock);
  hello.set_atf_version(kAtfVersion);
  hello.set_agent_version("conformance 1");
  hello.set_nonce(random_bytes(wire::kNonceBytes));
  return hello;
}

Status PlayedAgent::connect(wire::Channel which, const wire::Hello& hello) {
  auto link = FrameLink::connect(target_.address, target_.settings.timeout);
  if (!link.ok()) return link.error();
  Channel fresh;
  fresh.link = std::move(*link);
  fresh.nonce = hello.nonce();
  channel(which) = std::move(fresh);
  if (which == wire::CHANNEL_DATA) resumed.clear();
  return {};
}

Status PlayedAgent::say_hello(wire::Channel which, const wire::Hello& hello) {
  COLLECT_TRY(connect(which, hello));
  if (channel(which).link.send(wire::FrameType::kHello, hello)) return {};
  return Error{Code::kUnavailable, "the connection broke at the Hello"};
}

wire::Proof PlayedAgent::proof(wire::Channel which) const {
  const Channel& own = which == wire::CHANNEL_CONTROL ? control : data;
  wire::ProofContext context;
  context.channel = static_cast<uint8_t>(which);
  std::memcpy(context.process_id, process_id.data(), wire::kProcessIdBytes);
  std::memcpy(context.agent_nonce, own.nonce.data(), wire::kNonceBytes);
  std::memcpy(context.collector_nonce, own.challenge->nonce().data(), wire::kNonceBytes);
  wire::Proof proof;
  proof.set_token_proof(made_proof(wire::ProofKind::kAgentToken, target_.settings.token, context));
  proof.set_resume_proof(made_proof(wire::ProofKind::kAgentResume, resume_key, context));
  return proof;
}

Status PlayedAgent::prove(wire::Channel which) {
  Channel& own = channel(which);
  wait([&own] { return own.challenge || own.is_over; });
  if (!own.challenge) {
    const std::string why = own.refuse ? refusal_text(*own.refuse) : own.fault;
    return Error{Code::kUnavailable, "no Challenge came" + (why.empty() ? "" : ": " + why)};
  }
  if (own.challenge->nonce().size() != wire::kNonceBytes) {
    return Error{Code::kDamaged,
                 fmt::format("the Challenge's nonce has {} bytes", own.challenge->nonce().size())};
  }
  if (own.link.send(wire::FrameType::kProof, proof(which))) return {};
  return Error{Code::kUnavailable, "the connection broke at the Proof"};
}

Status PlayedAgent::expect_welcome(wire::Channel which) {
  Channel& own = channel(which);
  wait([&own] { return own.welcome || own.is_over; });
  if (own.welcome) return {};
  const std::string why = own.refuse ? refusal_text(*own.refuse) : own.fault;
  return Error{Code::kUnavailable, std::string("no Welcome came on ") +
                                       (which == wire::CHANNEL_CONTROL ? "control" : "data") +
                                       (why.empty() ? "" : ": " + why)};
}

Status PlayedAgent::open_channel(wire::Channel which) {
  COLLECT_TRY(say_hello(which, hello(which)));
  COLLECT_TRY(prove(which));
  return expect_welcome(which);
}

Status PlayedAgent::open() {
  COLLECT_TRY(open_channel(wire::CHANNEL_CONTROL));
  return open_channel(wire::CHANNEL_DATA);
}

Status PlayedAgent::record() {
  COLLECT_TRY(open());
  if (start_recording(1) && send_module() && open_stream(1)) return {};
  return Error{Code::kUnavailable, "the data connection broke"};
}

bool PlayedAgent::start_recording(uint32_t recording) {
  wire::RecordingStart start;
  start.set_recording(recording);
  start.set_start_ns(record_ns(0));
  start.set_start_unix_ns(static_cast<uint64_t>(::time(nullptr)) * 1'000'000'000u);
  start.set_atf_version(kAtfVersion);
  return data.link.send(wire::FrameType::kRecordingStart, start);
}

bool PlayedAgent::send_module() {
  wire::Modules modules;
  wire::Module* module = modules.add_modules();
  module->set_module_id(kSentModule);
  module->set_path("/conformance");
  module->set_size(4096);
  return data.link.send(wire::FrameType::kModules, modules);
}

bool PlayedAgent::open_stream(uint32_t stream) {
  wire::StreamOpen open;
  open.set_recording(1);
  open.set_stream_id(stream);
  open.set_thread_id(stream);
  open.set_thread_name(fmt::format("thread {}", stream));
  open.set_start_ns(record_ns(0));
  return data.link.send(wire::FrameType::kStreamOpen, open);
}

bool PlayedAgent::send_page(uint32_t stream, uint64_t first_seq, uint32_t count) {
  uint64_t& sent = sent_[stream];
  sent = std::max(sent, first_seq + count);
  return data.link.send_bytes(page_of(stream, first_seq, count));
}

bool PlayedAgent::send_encoded(const PageHeader& page, Bytes sent) {
  sent_[page.stream_id] = std::max(sent_[page.stream_id], page.first_seq + page.record_count);
  return data.link.send_bytes(page_frame_bytes(page, sent));
}

bool PlayedAgent::close_stream(uint32_t stream, uint64_t index_count, uint64_t index_lost) {
  wire::StreamClose close;
  close.set_stream_id(stream);
  close.set_end_ns(record_ns(index_count));
  close.set_index_count(index_count);
  close.set_index_lost(index_lost);
  sent_[stream] = std::max(sent_[stream], index_count);
  return data.link.send(wire::FrameType::kStreamClose, close);
}

bool PlayedAgent::end_recording() {
  wire::RecordingEnd end;
  end.set_recording(1);
  end.set_end_ns(record_ns(1'000'000));
  end.set_reason("exit");
  end.mutable_process_end()->set_how(wire::ProcessEnd::EXITED);
  return data.link.send(wire::FrameType::kRecordingEnd, end);
}

bool PlayedAgent::send_bye() {
  wire::Bye bye;
  bye.set_reason("exit");
  return control.link.send(wire::FrameType::kBye, bye);
}

void PlayedAgent::drop() {
  control.link.close();
  data.link.close();
}

bool PlayedAgent::wait(const std::function<bool()>& holds, milliseconds bound) {
  return serve_until(holds, bound, [this](milliseconds turn) { serve(turn); });
}

bool PlayedAgent::wait_stored(uint32_t stream, uint64_t index_next) {
  return wait([&] {
    const auto known = brought.acked.find(stream);
    return known != brought.acked.end() && known->second.index_next() >= index_next;
  });
}

bool PlayedAgent::wait_over(wire::Channel which) {
  return wait([&] { return channel(which).is_over; });
}

void PlayedAgent::serve(milliseconds bound) {
  wait_readable({control.is_over ? -1 : control.link.fd(), data.is_over ? -1 : data.link.fd()},
                bound);
  take_all(wire::CHANNEL_CONTROL);
  take_all(wire::CHANNEL_DATA);
  if (!is_silent && control.welcome && !control.is_over) beat();
}

void PlayedAgent::take_all(wire::Channel which) {
  Channel& own = channel(which);
  if (!own.link.is_open() || own.is_over) return;
  own.link.read_some();
  while (const auto frame = own.link.take()) on_frame(which, *frame);
  if (own.link.error() != wire::FrameError::kNone) {
    own.fault = std::string("its frame is damaged: ") + wire::frame_error_text(own.link.error());
    own.is_over = true;
  }
  if (own.link.has_ended()) own.is_over = true;
}

void PlayedAgent::on_frame(wire::Channel which, const ReceivedFrame& frame) {
  Channel& own = channel(which);
  if (!frame.has_zeros && own.fault.empty()) {
    own.fault = fmt::format("flags or reserved of its {} are not zero", type_text(frame.type));
  }
  if (own.refuse && own.fault.empty()) own.fault = type_text(frame.type) + " came after Refuse";
  switch (frame.type) {
    case wire::FrameType::kChallenge:
      own.challenge = frame.parsed<wire::Challenge>();
      return;
    case wire::FrameType::kWelcome:
      own.welcome = frame.parsed<wire::Welcome>();
      if (own.welcome && !own.welcome->resume_key().empty()) {
        resume_key = own.welcome->resume_key();
      }
      return;
    case wire::FrameType::kRefuse:
      own.refuse = frame.parsed<wire::Refuse>();
      return;
    default:
      break;
  }
  if (which == wire::CHANNEL_CONTROL) {
    on_control(frame);
  } else if (const auto positions = frame.parsed<wire::Resume>();
             frame.type == wire::FrameType::kResume && positions) {
    resumed.insert(resumed.end(), positions->positions().begin(), positions->positions().end());
  } else if (is_known(frame.type) && own.fault.empty()) {
    own.fault = type_text(frame.type) + " came on data";
  }
}

void PlayedAgent::on_control(const ReceivedFrame& frame) {
  brought.frames_at.push_back(frame.at);
  if (frame.type == wire::FrameType::kAck) {
    if (const auto ack = frame.parsed<wire::Ack>()) on_ack(*ack);
  } else if (frame.type == wire::FrameType::kClockProbe) {
    if (const auto probe = frame.parsed<wire::ClockProbe>()) answer(*probe);
  } else if (frame.type == wire::FrameType::kCommand) {
    const auto command = frame.parsed<wire::Command>();
    wire::CommandResult result;
    result.set_command_id(command ? command->command_id() : 0);
    result.set_error("this agent takes no commands");
    control.link.send(wire::FrameType::kCommandResult, result);
  } else if (frame.type == wire::FrameType::kBye) {
    brought.bye = true;
  } else if (frame.type != wire::FrameType::kHeartbeat && is_known(frame.type) &&
             control.fault.empty()) {
    control.fault = type_text(frame.type) + " came on control";
  }
}

void PlayedAgent::on_ack(const wire::Ack& ack) {
  ++brought.ack_frames;
  for (const wire::StreamPosition& position : ack.positions()) {
    wire::StreamPosition& known = brought.acked[position.stream_id()];
    const std::string stream = fmt::format("stream {}", position.stream_id());
    if (position.index_next() < known.index_next()) {
      brought.ack_fault = fmt::format("the position of {} went back from {} to {}", stream,
                                      known.index_next(), position.index_next());
    } else if (position.index_next() > sent_[position.stream_id()]) {
      brought.ack_fault = fmt::format("{} is acknowledged up to record {}, and {} were sent",
                                      stream, position.index_next(), sent_[position.stream_id()]);
    }
    known = position;
  }
  if (ack.recording_ended() != 0) {
    brought.recording_ended = ack.recording_ended();
    ++brought.recording_ended_count;
  }
  brought.stalls_next = std::max(brought.stalls_next, ack.stalls_next());
}

void PlayedAgent::answer(const wire::ClockProbe& probe) {
  wire::ClockReply reply;
  reply.set_t2_ns(device_ns());
  brought.probes.push_back(probe);
  if (is_silent) return;
  reply.set_burst(probe.burst());
  reply.set_number(probe.number());
  reply.set_t1_ns(probe.t1_ns());
  reply.set_t3_ns(device_ns());
  control.link.send(wire::FrameType::kClockReply, reply);
}

void PlayedAgent::beat() {
  const uint32_t said = control.welcome->heartbeat_ms();
  const milliseconds interval(said == 0 ? 1000 : said);
  if (Clock::now() - beat_at_ < interval / 2) return;
  beat_at_ = Clock::now();
  wire::Heartbeat heartbeat;
  heartbeat.set_is_recording(true);
  heartbeat.set_recording(1);
  control.link.send(wire::FrameType::kHeartbeat, heartbeat);
}

Verdict PlayedAgent::refused(wire::Channel which, wire::RefuseCode code) {
  const bool over = wait_over(which);
  const Channel& own = channel(which);
  wire::Refuse wanted;
  wanted.set_code(code);
  std::string name = wire::RefuseCode_Name(code);
  const std::string expected =
      fmt::format("Refuse({}) and the end of the connection", name.erase(0, 7));
  if (!own.refuse) {
    return Verdict::failed(
        expected, over ? "the connection ended without a Refuse" : "the collector continued");
  }
  if (own.refuse->code() != code)
    return Verdict::failed(expected, refusal_text(*own.refuse) + " came");
  if (!over) return Verdict::failed(expected, "the connection stayed open after the Refuse");
  return own.fault.empty() ? Verdict::ok() : Verdict::failed(expected, own.fault);
}

Verdict PlayedAgent::goes_on() {
  const size_t before = brought.frames_at.size();
  const bool came =
      wait([&] { return brought.frames_at.size() > before || control.is_over || data.is_over; });
  const Channel& ended = control.refuse || !data.refuse ? control : data;
  if (ended.refuse)
    return Verdict::failed("that the connection continues", refusal_text(*ended.refuse));
  if (control.is_over || data.is_over) {
    return Verdict::failed("that the connection continues", "it ended");
  }
  return came ? Verdict::ok()
              : Verdict::failed("that the connection continues", "nothing came any more");
}

}  // namespace collect::conformance
