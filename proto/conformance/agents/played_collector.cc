#include "proto/conformance/agents/played_collector.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "proto/wire/proof.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

wire::ProofContext context_of(const PlayedCollector::Connection& connection) {
  wire::ProofContext context;
  context.channel = static_cast<uint8_t>(connection.channel);
  std::memcpy(context.process_id, connection.hello.process_id().data(), wire::kProcessIdBytes);
  std::memcpy(context.agent_nonce, connection.hello.nonce().data(), wire::kNonceBytes);
  std::memcpy(context.collector_nonce, connection.challenge.nonce().data(), wire::kNonceBytes);
  return context;
}

// A Hello's fields that never change in a process.
std::string constant_part(wire::Hello hello) {
  hello.clear_channel();
  hello.clear_nonce();
  hello.clear_recording();
  hello.clear_is_recording();
  hello.clear_detail();
  return hello.SerializeAsString();
}

const char* name_of(wire::Channel channel) {
  return channel == wire::CHANNEL_DATA ? "data" : "control";
}

}  // namespace

PlayedCollector::PlayedCollector(const Settings& settings)
    : resume_key(random_bytes(wire::kResumeKeyBytes)), settings_(settings) {}

bool PlayedCollector::wait(const std::function<bool()>& holds, milliseconds bound) {
  return serve_until(holds, bound, [this](milliseconds turn) { serve(turn); });
}

PlayedCollector::Connection* PlayedCollector::connection(wire::Channel channel) {
  const auto found = std::find_if(connections_.rbegin(), connections_.rend(),
                                  [channel](const auto& one) { return one->channel == channel; });
  return found == connections_.rend() ? nullptr : found->get();
}

const PlayedCollector::Connection* PlayedCollector::connection(wire::Channel channel) const {
  return const_cast<PlayedCollector*>(this)->connection(channel);
}

bool PlayedCollector::is_open() const {
  for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
    const Connection* one = connection(channel);
    if (one == nullptr || one->stage != Stage::kWelcomed || one->is_over) return false;
  }
  return true;
}

bool PlayedCollector::wait_open() {
  return wait([this] { return is_open(); });
}

std::string PlayedCollector::why_not_open() const {
  for (const char* rule : {"whole-frames", "opening", "hello", "one-process", "token-proof"}) {
    if (const std::string fault = faults.of(rule); !fault.empty()) return fault;
  }
  if (connections_.empty()) return "the agent did not connect";
  for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
    const Connection* one = connection(channel);
    const std::string name = name_of(channel);
    if (one == nullptr) return "no Hello came for " + name;
    if (one->refuse) return fmt::format("{} came on {}", refusal_text(*one->refuse), name);
    if (one->is_over) return "the agent ended " + name;
    if (one->stage == Stage::kProof) return "no Proof came on " + name;
  }
  return "the two connections were not open together";
}

void PlayedCollector::serve(milliseconds bound) {
  std::vector<int> handles{listener_.fd()};
  for (const auto& one : connections_) handles.push_back(one->is_over ? -1 : one->link.fd());
  wait_readable(handles, bound);
  if (auto link = listener_.accept(settings_.timeout)) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->link = std::move(*link);
  }
  for (size_t i = 0; i < connections_.size(); ++i) take_all(*connections_[i]);
  Connection* control = connection(wire::CHANNEL_CONTROL);
  if (control == nullptr || control->stage != Stage::kWelcomed || control->is_over) return;
  if (beats) beat();
  look_at_silence(*control);
}

void PlayedCollector::take_all(Connection& connection) {
  if (connection.is_over || !connection.link.is_open()) return;
  const bool held = connection.stage == Stage::kHeld;
  connection.link.read_some();
  while (const auto frame = connection.link.take()) on_frame(connection, *frame);
  if (connection.link.error() != wire::FrameError::kNone) {
    faults.add("whole-frames", wire::frame_error_text(connection.link.error()));
    connection.is_over = true;
    connection.link.close();
  }
  if (connection.link.has_ended()) connection.is_over = true;
  if (held && !connection.is_over && Clock::now() - connection.held_at >= data_hold) {
    welcome(connection);
  }
}

void PlayedCollector::on_frame(Connection& connection, const ReceivedFrame& frame) {
  connection.frame_at = frame.at;
  if (!frame.has_zeros) {
    faults.add("whole-frames",
               fmt::format("flags or reserved of a {} are not zero", type_text(frame.type)));
  }
  if (connection.refuse) faults.add("refusals", type_text(frame.type) + " came after Refuse");
  if (frame.type == FrameType::kRefuse) return on_refuse(connection, frame);
  if (!is_known(frame.type)) return;
  switch (connection.stage) {
    case Stage::kHello:
      return on_hello(connection, frame);
    case Stage::kProof:
      return on_proof(connection, frame);
    case Stage::kHeld:
      faults.add("data-waits", type_text(frame.type) + " came on data before its Welcome");
      return;
    case Stage::kWelcomed:
      return connection.channel == wire::CHANNEL_DATA ? on_data(frame)
                                                      : on_control(connection, frame);
  }
}

void PlayedCollector::on_refuse(Connection& connection, const ReceivedFrame& frame) {
  connection.refuse = frame.parsed<wire::Refuse>();
  if (!connection.refuse) {
    faults.add("whole-frames", "the body of a Refuse is no message");
    connection.refuse.emplace();
  }
}

void PlayedCollector::on_hello(Connection& connection, const ReceivedFrame& frame) {
  const auto hello = frame.parsed<wire::Hello>();
  if (frame.type != FrameType::kHello || !hello) {
    faults.add("opening", "the first frame of a connection is " + type_text(frame.type));
    connection.is_over = true;
    connection.link.close();
    return;
  }
  if (first_hello_ && hello->process_id() != first_hello_->process_id() &&
      hello->pid() != first_hello_->pid()) {  // another process of the program
    wire::Refuse refuse;
    refuse.set_code(wire::REFUSE_LIMIT);
    refuse.set_reason("one process is checked");
    send(connection, FrameType::kRefuse, refuse);
    connection.is_over = true;
    connection.link.close();
    return;
  }
  look_at_hello(*hello);
  connection.hello = *hello;
  if (hello->process_id().size() != wire::kProcessIdBytes ||
      hello->nonce().size() != wire::kNonceBytes) {
    connection.is_over = true;
    connection.link.close();
    return;
  }
  connection.channel = hello->channel();
  connection.challenge.set_nonce(random_bytes(wire::kNonceBytes));
  const wire::ProofContext context = context_of(connection);
  if (!settings_.token.empty()) {
    std::string proof(wire::kProofBytes, '\0');
    wire::make_proof(wire::ProofKind::kCollectorToken,
                     bytes_of(settings_.token + (wrong_token ? "x" : "")), context,
                     reinterpret_cast<uint8_t*>(proof.data()));
    connection.challenge.set_token_proof(proof);
  }
  connection.stage = Stage::kProof;
  send(connection, FrameType::kChallenge, connection.challenge);
}

void PlayedCollector::look_at_hello(const wire::Hello& hello) {
  if (hello.channel() != wire::CHANNEL_CONTROL && hello.channel() != wire::CHANNEL_DATA) {
    faults.add("hello", fmt::format("channel is {}", hello.channel()));
  }
  if (hello.min_version() > wire::kProtocolVersion ||
      hello.max_version() < wire::kProtocolVersion) {
    faults.add("hello",
               fmt::format("its versions are {} to {}", hello.min_version(), hello.max_version()));
  }
  if (hello.process_id().size() != wire::kProcessIdBytes) {
    faults.add("hello", fmt::format("process_id has {} bytes", hello.process_id().size()));
  }
  if (hello.nonce().size() != wire::kNonceBytes) {
    faults.add("hello", fmt::format("nonce has {} bytes", hello.nonce().size()));
  }
  if (hello.pid() == 0) faults.add("hello", "pid is 0");
  if (hello.atf_version() != 1 && hello.atf_version() != 2) {
    faults.add("hello", fmt::format("atf_version is {}", hello.atf_version()));
  }
  if (std::find(nonces_.begin(), nonces_.end(), hello.nonce()) != nonces_.end()) {
    faults.add("fresh-nonces", "two connections have the same nonce");
  }
  nonces_.push_back(hello.nonce());
  if (!first_hello_) {
    first_hello_ = hello;
    if (hello.channel() == wire::CHANNEL_DATA) faults.add("control-first", "data came first");
    return;
  }
  const Connection* control = connection(wire::CHANNEL_CONTROL);
  const bool welcomed = control != nullptr && control->stage == Stage::kWelcomed;
  if (hello.channel() == wire::CHANNEL_DATA && !welcomed) {
    faults.add("control-first", "the Hello on data came before the Welcome on control");
  }
  if (hello.process_id() != first_hello_->process_id()) {
    faults.add("one-process", "the two channels have different process ids");
  } else if (constant_part(hello) != constant_part(*first_hello_)) {
    faults.add("hello", "the two channels say different things of the process");
  }
}

void PlayedCollector::on_proof(Connection& connection, const ReceivedFrame& frame) {
  const auto proof = frame.parsed<wire::Proof>();
  if (frame.type != FrameType::kProof || !proof) {
    faults.add("opening", type_text(frame.type) + " came in place of Proof");
    connection.is_over = true;
    connection.link.close();
    return;
  }
  const wire::ProofContext context = context_of(connection);
  if (!settings_.token.empty() &&
      !wire::check_proof(wire::ProofKind::kAgentToken, bytes_of(settings_.token), context,
                         bytes_of(proof->token_proof()))) {
    faults.add("token-proof", proof->token_proof().empty() ? "Proof has no token proof"
                                                           : "the token proof is wrong");
  }
  if (is_known_) {
    if (!wire::check_proof(wire::ProofKind::kAgentResume, bytes_of(resume_key), context,
                           bytes_of(proof->resume_proof()))) {
      faults.add("resume-proof", proof->resume_proof().empty() ? "Proof has no resume proof"
                                                               : "the resume proof is wrong");
    }
  } else if (!proof->resume_proof().empty()) {
    faults.add("resume-proof", "a resume proof came before there was a resume key");
  }
  connection.held_at = Clock::now();
  connection.stage = Stage::kHeld;
  if (connection.channel != wire::CHANNEL_DATA || data_hold.count() == 0) welcome(connection);
}

void PlayedCollector::welcome(Connection& connection) {
  const bool is_data = connection.channel == wire::CHANNEL_DATA;
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_features((connection.hello.features() & features) | unasked_features);
  welcome.set_collector("conformance");
  welcome.set_heartbeat_ms(heartbeat_ms);
  welcome.set_resumed(is_data && kept.has_value());
  if (!is_data && !is_known_) welcome.set_resume_key(resume_key);
  is_known_ = true;
  if (is_data && kept) {
    for (int first = 0; first < kept->positions_size();
         first += static_cast<int>(wire::kMaxResumesPerFrame)) {
      wire::Resume resume;
      const int end =
          std::min(first + static_cast<int>(wire::kMaxResumesPerFrame), kept->positions_size());
      for (int i = first; i < end; ++i) *resume.add_positions() = kept->positions(i);
      send(connection, FrameType::kResume, resume);
    }
  }
  if (is_data) watch.begin(connection.hello, welcome.features());
  connection.stage = Stage::kWelcomed;
  connection.frame_at = Clock::now();
  send(connection, FrameType::kWelcome, welcome);
}

}  // namespace collect::conformance
