#include "agent/drain/link/hello.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/drain/link/control.h"
#include "agent/drain/link/frames.h"
#include "agent/platform/identity.h"
#include "agent/platform/system.h"
#include "agent/ring/recorder.h"
#include "agent/text.h"
#include "formats/atf/layout.h"
#include "proto/wire/codec_rules.h"

namespace collect::agent {
namespace {

// With the white space around the token.
constexpr size_t kMaxTokenFile = 4 * wire::kMaxTokenBytes;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// 16 bytes that no other draw gives. False: someone may guess them.
bool draw_id(uint8_t out[16]) {
  // A sandbox may forbid the system call and allow the file.
  if (fill_random(out, 16) || read_file("/dev/urandom", reinterpret_cast<char*>(out), 16) == 16) {
    return true;
  }
  // Without the system's randomness, time and process number must do: unique, if not random.
  const uint64_t parts[2] = {now_ns() * 0x9E3779B97F4A7C15ull,
                             (static_cast<uint64_t>(sys::getpid()) << 32) ^ (now_ns() << 1)};
  std::memcpy(out, parts, sizeof parts);
  return false;
}

}  // namespace

size_t read_file(const char* path, char* out, size_t size) {
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return 0;
  size_t used = 0;
  while (used < size) {
    const ssize_t got = sys::read(fd, out + used, size - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  sys::close(fd);
  return used;
}

bool Nonces::are_of_one_collector(const Nonces& other) const {
  return std::memcmp(collector_id, other.collector_id, sizeof collector_id) == 0;
}

void ProcessIdentity::prepare(const Settings& settings) {
  settings_ = &settings;
  forget_resume_keys();
  token_bytes_ = 0;
  hello_ = collect_wire_Hello collect_wire_Hello_init_zero;
  hello_.min_version = wire::kProtocolVersion;
  hello_.max_version = wire::kProtocolVersion;
  hello_.features = wire::kCodecFeatures;
  if (settings.has_filter()) hello_.features |= wire::kFeatureStartFilter;
  (void)draw_id(hello_.process_id);
  fill_system(hello_);
#if defined(__x86_64__)
  hello_.arch = collect_wire_Arch_ARCH_X86_64;
#else
  hello_.arch = collect_wire_Arch_ARCH_ARM64;
#endif
  hello_.pid = static_cast<uint32_t>(sys::getpid());
  hello_.parent_pid = static_cast<uint32_t>(sys::getppid());
  copy_utf8(hello_.tag, sizeof hello_.tag, settings.tag, sizeof settings.tag);
  copy_utf8(hello_.agent_version, sizeof hello_.agent_version, COLLECT_VERSION, 32);
#if defined(__APPLE__)
  hello_.clock_type = static_cast<uint32_t>(atf::ClockType::kMachContinuous);
#else
  hello_.clock_type = static_cast<uint32_t>(atf::ClockType::kBoottime);
#endif
  hello_.atf_version = settings.atf_version;
  hello_.page_bytes = kPageBytes;
}

bool ProcessIdentity::read_token() {
  token_bytes_ = 0;
  if (settings_->token_file[0] == '\0') {
    token_bytes_ = strnlen(settings_->run_key, kMaxRunKey);
    std::memcpy(token_, settings_->run_key, token_bytes_);
    return true;
  }
  char text[kMaxTokenFile + 1];
  size_t size = read_file(settings_->token_file, text, sizeof text);
  if (size > kMaxTokenFile) return false;
  while (size > 0 && is_space(text[size - 1])) --size;
  size_t start = 0;
  while (start < size && is_space(text[start])) ++start;
  size -= start;
  if (size == 0 || size > wire::kMaxTokenBytes) return false;
  std::memcpy(token_, text + start, size);
  token_bytes_ = size;
  return true;
}

bool ProcessIdentity::draw_nonce(uint8_t nonce[wire::kNonceBytes]) const {
  return draw_id(nonce) || token_bytes_ == 0;
}

const collect_wire_Hello& ProcessIdentity::hello(bool data,
                                                 const uint8_t nonce[wire::kNonceBytes]) {
  hello_.channel = data ? collect_wire_Channel_CHANNEL_DATA : collect_wire_Channel_CHANNEL_CONTROL;
  std::memcpy(hello_.nonce, nonce, sizeof hello_.nonce);
  hello_.recording = current_recording();
  hello_.is_recording = is_recording();
  hello_.detail = static_cast<collect_wire_DetailMode>(detail_mode());
  hello_.buffer_bytes = recorder_stats().buffer_bytes;
  hello_.sender_pid = static_cast<uint32_t>(sys::getpid());
  hello_.pid_namespace = pid_namespace();
  return hello_;
}

wire::ProofContext ProcessIdentity::context_of(bool data, const Nonces& nonces) const {
  wire::ProofContext context;
  context.dialled = settings_->role == Role::kListen;
  context.channel = data ? collect_wire_Channel_CHANNEL_DATA : collect_wire_Channel_CHANNEL_CONTROL;
  std::memcpy(context.process_id, hello_.process_id, sizeof context.process_id);
  std::memcpy(context.agent_nonce, nonces.agent, sizeof context.agent_nonce);
  std::memcpy(context.collector_nonce, nonces.collector, sizeof context.collector_nonce);
  return context;
}

// An agent that has a token says nothing more to a collector that does not know it: someone else
// may have the port.
const char* ProcessIdentity::judge_challenge(bool data, Nonces& nonces, Bytes body,
                                             collect_wire_RefuseCode& code) const {
  collect_wire_Challenge challenge = collect_wire_Challenge_init_zero;
  code = collect_wire_RefuseCode_REFUSE_PROTOCOL;
  if (!decode_message(body, collect_wire_Challenge_fields, &challenge) ||
      challenge.nonce.size != wire::kNonceBytes) {
    return "the Challenge can't be read";
  }
  std::memcpy(nonces.collector, challenge.nonce.bytes, wire::kNonceBytes);
  std::memset(nonces.collector_id, 0, sizeof nonces.collector_id);
  if (challenge.collector_id.size == wire::kCollectorIdBytes) {
    std::memcpy(nonces.collector_id, challenge.collector_id.bytes, wire::kCollectorIdBytes);
  }
  if (token_bytes_ == 0) return nullptr;
  code = collect_wire_RefuseCode_REFUSE_TOKEN;
  if (challenge.token_proof.size == 0) {
    return "this agent asks for a token, and the collector has none";
  }
  const bool known = wire::check_proof(
      wire::ProofKind::kCollectorToken, Bytes(token_, token_bytes_), context_of(data, nonces),
      Bytes(challenge.token_proof.bytes, challenge.token_proof.size));
  return known ? nullptr : "the collector has another token than this agent";
}

void ProcessIdentity::prove(bool data, const Nonces& nonces, collect_wire_Proof& proof) const {
  proof = collect_wire_Proof collect_wire_Proof_init_zero;
  const wire::ProofContext context = context_of(data, nonces);
  if (token_bytes_ != 0) {
    wire::make_proof(wire::ProofKind::kAgentToken, Bytes(token_, token_bytes_), context,
                     proof.token_proof.bytes);
    proof.token_proof.size = wire::kProofBytes;
  }
  if (const ResumeKey* const known = resume_key_of(nonces)) {
    wire::make_proof(wire::ProofKind::kAgentResume, Bytes(known->key, sizeof known->key), context,
                     proof.resume_proof.bytes);
    proof.resume_proof.size = wire::kProofBytes;
  }
}

const ProcessIdentity::ResumeKey* ProcessIdentity::resume_key_of(const Nonces& nonces) const {
  for (const ResumeKey& each : resume_keys_) {
    if (each.used &&
        std::memcmp(each.collector_id, nonces.collector_id, sizeof each.collector_id) == 0) {
      return &each;
    }
  }
  return nullptr;
}

void ProcessIdentity::keep_resume_key(const Nonces& nonces,
                                      const uint8_t key[wire::kResumeKeyBytes]) {
  const ResumeKey* const known = resume_key_of(nonces);
  uint32_t place = next_key_;
  if (known != nullptr) {
    place = static_cast<uint32_t>(known - resume_keys_);
  } else {
    next_key_ = (next_key_ + 1) % kMaxResumeKeys;
  }
  ResumeKey& kept = resume_keys_[place];
  kept.used = true;
  std::memcpy(kept.collector_id, nonces.collector_id, sizeof kept.collector_id);
  std::memcpy(kept.key, key, sizeof kept.key);
}

void ProcessIdentity::forget_resume_keys() {
  std::memset(resume_keys_, 0, sizeof resume_keys_);
  next_key_ = 0;
}

void ProcessIdentity::become_another() {
  (void)draw_id(hello_.process_id);
  forget_resume_keys();
}

}  // namespace collect::agent
