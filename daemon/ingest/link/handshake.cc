#include "daemon/ingest/link/handshake.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/wire_values.h"

namespace collect::ingest {
namespace {

std::string os_name(uint32_t os) {
  switch (os) {
    case wire::OS_IOS:
      return "ios";
    case wire::OS_ANDROID:
      return "android";
    case wire::OS_MACOS:
      return "macos";
    case wire::OS_LINUX:
      return "linux";
    case wire::OS_WINDOWS:
      return "windows";
    default:
      return "unknown";
  }
}

std::string arch_name(uint32_t arch) {
  switch (arch) {
    case wire::ARCH_X86_64:
      return "x86_64";
    case wire::ARCH_ARM64:
      return "arm64";
    default:
      return "unknown";
  }
}

bool is_too_long(const wire::Hello& hello) {
  for (const std::string* name : {&hello.process_name(), &hello.device_id(), &hello.device_model(),
                                  &hello.boot_id(), &hello.tag(), &hello.agent_version()}) {
    if (name->size() > kMaxNameBytes) return true;
  }
  return hello.executable().size() > kMaxPathBytes;
}

Refusal protocol(std::string reason) {
  return {wire::REFUSE_PROTOCOL, std::move(reason), false};
}

Bytes bytes_of(std::string_view text) {
  return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

bool fill_random(std::span<uint8_t> out) {
  return ::getentropy(out.data(), out.size()) == 0;
}

// Empty: the key is valid for every peer that has it. Addresses of phones change.
std::string owner_word(const principal::Principal& principal) {
  switch (principal.kind) {
    case principal::Principal::Kind::kUid:
      return "uid " + principal.id;
    case principal::Principal::Kind::kCertificate:
      return "certificate " + principal.id;
    case principal::Principal::Kind::kAddress:
    case principal::Principal::Kind::kUnknown:
      break;
  }
  return {};
}

bool is_known(const wire::Hello& hello) {
  return hello.os() >= wire::OS_IOS && hello.os() <= wire::OS_WINDOWS &&
         hello.arch() >= wire::ARCH_X86_64 && hello.arch() <= wire::ARCH_ARM64 &&
         hello.clock_type() >= 1 && hello.clock_type() <= 3;
}

}  // namespace

std::optional<Refusal> check_untrusted_hello(const wire::Hello& hello) {
  if (hello.min_version() > wire::kProtocolVersion ||
      hello.max_version() < wire::kProtocolVersion) {
    return Refusal{
        wire::REFUSE_VERSION,
        fmt::format("this collector speaks version {} of the protocol, the agent versions {} to {}",
                    wire::kProtocolVersion, hello.min_version(), hello.max_version()),
        false};
  }
  if (hello.channel() != wire::CHANNEL_CONTROL && hello.channel() != wire::CHANNEL_DATA) {
    return protocol("the hello names no channel");
  }
  if (hello.process_id().size() != std::tuple_size_v<ProcessId>) {
    return protocol(fmt::format("the hello's process id has {} bytes instead of 16",
                                hello.process_id().size()));
  }
  if (hello.nonce().size() != wire::kNonceBytes) {
    return protocol(
        fmt::format("the hello's nonce has {} bytes instead of 16", hello.nonce().size()));
  }
  if (hello.atf_version() != 1 && hello.atf_version() != 2) {
    return Refusal{wire::REFUSE_VERSION,
                   fmt::format("ATF version {} is not 1 or 2", hello.atf_version()), false};
  }
  if (is_too_long(hello)) return protocol("a name in the hello is longer than the protocol allows");
  if (!is_known(hello)) return protocol("the hello's os, arch or clock type is unknown");
  return std::nullopt;
}

Refusal no_randomness() {
  return {wire::REFUSE_LIMIT, "the collector's machine gives no random bytes", true};
}

std::optional<wire::ProofContext> begin_proofs(const wire::Hello& hello, bool dialled) {
  wire::ProofContext context;
  context.dialled = dialled;
  context.channel = static_cast<uint8_t>(hello.channel());
  COLLECT_CHECK(hello.process_id().size() == sizeof context.process_id &&
                hello.nonce().size() == sizeof context.agent_nonce);
  std::copy(hello.process_id().begin(), hello.process_id().end(), context.process_id);
  std::copy(hello.nonce().begin(), hello.nonce().end(), context.agent_nonce);
  if (!fill_random(context.collector_nonce)) return std::nullopt;
  return context;
}

wire::Challenge challenge_for(const wire::ProofContext& context, std::string_view token,
                              const storage::CollectorIdentity& collector) {
  wire::Challenge challenge;
  challenge.set_nonce(context.collector_nonce, sizeof context.collector_nonce);
  if (collector.is_known()) challenge.set_collector_id(collector.id.data(), collector.id.size());
  if (!token.empty()) {
    uint8_t proof[wire::kProofBytes];
    make_proof(wire::ProofKind::kCollectorToken, bytes_of(token), context, proof);
    challenge.set_token_proof(proof, sizeof proof);
  }
  return challenge;
}

std::optional<Refusal> check_token(const wire::Proof& proof, const wire::ProofContext& context,
                                   std::string_view token) {
  // Who dials has chosen the agent, which has asked for our proof if it has a token.
  if (token.empty() || context.dialled) return std::nullopt;
  if (check_proof(wire::ProofKind::kAgentToken, bytes_of(token), context,
                  bytes_of(proof.token_proof()))) {
    return std::nullopt;
  }
  return Refusal{wire::REFUSE_TOKEN,
                 proof.token_proof().empty()
                     ? "this collector asks for a token, and the agent has none"
                     : "the token is wrong",
                 false};
}

std::optional<storage::ResumeKey> make_resume_key(const principal::Principal& principal) {
  storage::ResumeKey key;
  if (!fill_random(key.bytes)) return std::nullopt;
  key.owner = owner_word(principal);
  return key;
}

std::optional<Refusal> check_resume(const storage::ResumeKey& key, const CheckedHello& checked,
                                    const principal::Principal& principal) {
  if (!key.owner.empty() && key.owner != owner_word(principal)) {
    return Refusal{wire::REFUSE_RESUME,
                   "the process is known here, and its connections belong to another principal",
                   false};
  }
  if (check_proof(wire::ProofKind::kAgentResume, key.bytes, checked.context,
                  bytes_of(checked.resume_proof))) {
    return std::nullopt;
  }
  return Refusal{wire::REFUSE_RESUME,
                 checked.resume_proof.empty()
                     ? "the process is known here, and the agent has no resume key"
                     : "the process is known here, and the resume key is not the one it was given",
                 false};
}

ProcessId process_id_of(const wire::Hello& hello) {
  ProcessId id{};
  COLLECT_CHECK(hello.process_id().size() == id.size());
  std::copy(hello.process_id().begin(), hello.process_id().end(), id.begin());
  return id;
}

AgentSnapshot agent_from_hello(const wire::Hello& hello) {
  AgentSnapshot agent;
  agent.process_id = process_id_of(hello);
  agent.process_name = hello.process_name();
  agent.executable = hello.executable();
  agent.pid = hello.pid();
  agent.parent_pid = hello.parent_pid();
  agent.device_id = hello.device_id();
  agent.device_model = hello.device_model();
  agent.os = os_name(hello.os());
  agent.arch = arch_name(hello.arch());
  agent.tag = hello.tag();
  agent.agent_version = hello.agent_version();
  agent.detail = detail_mode(hello.detail());
  return agent;
}

AgentSnapshot agent_from_identity(const storage::SessionIdentity& identity) {
  AgentSnapshot agent;
  agent.process_id = identity.process_id;
  agent.process_name = identity.process_name;
  agent.executable = identity.executable;
  agent.pid = identity.pid;
  agent.parent_pid = identity.parent_pid;
  agent.device_id = identity.device_id;
  agent.device_model = identity.device_model;
  agent.os = os_name(static_cast<uint32_t>(identity.os));
  agent.arch = arch_name(static_cast<uint32_t>(identity.arch));
  agent.tag = identity.tag;
  agent.agent_version = identity.agent_version;
  return agent;
}

storage::SessionIdentity identity_from(const wire::Hello& hello,
                                       const wire::RecordingStart& start) {
  storage::SessionIdentity identity;
  identity.process_id = process_id_of(hello);
  identity.recording = start.recording();
  identity.pid = hello.pid();
  identity.parent_pid = hello.parent_pid();
  identity.process_name = hello.process_name();
  identity.executable = hello.executable();
  identity.device_id = hello.device_id();
  identity.device_model = hello.device_model();
  identity.boot_id = hello.boot_id();
  identity.tag = hello.tag();
  identity.agent_version = hello.agent_version();
  identity.arch = static_cast<atf::Arch>(hello.arch());
  identity.os = static_cast<atf::Os>(hello.os());
  identity.clock = static_cast<atf::ClockType>(hello.clock_type());
  identity.version = static_cast<atf::Version>(start.atf_version());
  identity.start_ns = start.start_ns();
  identity.start_unix_ns = start.start_unix_ns();
  identity.max_depth = start.max_depth();
  identity.longer_than_ns = start.longer_than_ns();
  identity.max_rate = start.max_rate();
  identity.switches = start.switches();
  identity.no_switches = start.no_switches();
  identity.sample_hz = start.sample_hz();
  identity.no_samples = start.no_samples();
  return identity;
}

}  // namespace collect::ingest
