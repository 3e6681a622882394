// WIRE.md "Opening a connection", "Proofs".
#include <fmt/core.h>

#include <array>
#include <cstring>

#include "proto/conformance/collectors/collector_checks.h"
#include "proto/wire/codec_rules.h"
#include "proto/wire/proof.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr wire::Channel kControl = wire::CHANNEL_CONTROL;
constexpr wire::Channel kData = wire::CHANNEL_DATA;
constexpr milliseconds kOpeningBound{5'000};  // of WIRE.md
constexpr milliseconds kPairBound{10'000};    // in which data may be read to its end
constexpr uint32_t kUnknownVersion = 1'000;
constexpr uint64_t kDefinedFeatures = wire::kCodecFeatures | wire::kFeatureStartFilter;

Verdict opening(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) {
    return Verdict::failed("Challenge and Welcome on both channels", step.error().message);
  }
  for (const PlayedAgent::Channel* channel : {&agent.control, &agent.data}) {
    const wire::Welcome& welcome = *channel->welcome;
    if (welcome.version() != wire::kProtocolVersion) {
      return Verdict::failed("a Welcome of version 2",
                             fmt::format("it names {}", welcome.version()));
    }
    const uint32_t beat = welcome.heartbeat_ms();
    if (beat != 0 && (beat < 50 || beat > 60'000)) {
      return Verdict::failed("heartbeat_ms between 50 and 60,000", fmt::format("it is {}", beat));
    }
  }
  return Verdict::ok();
}

Verdict slow_opening(const Target& target) {
  PlayedAgent agent(target);
  const wire::Hello hello = agent.hello(kControl);
  if (const Status step = agent.connect(kControl, hello); !step.ok()) return not_reached(step);
  agent.control.link.send_byte_by_byte(frame_bytes(FrameType::kHello, hello));
  agent.wait([&] { return agent.control.challenge || agent.control.is_over; });
  if (agent.control.challenge) {
    agent.control.link.send_byte_by_byte(frame_bytes(FrameType::kProof, agent.proof(kControl)));
  }
  const Status welcomed = agent.expect_welcome(kControl);
  if (welcomed.ok()) return Verdict::ok();
  return Verdict::failed("a Welcome after an opening that came byte by byte",
                         welcomed.error().message);
}

Verdict fresh_nonces(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  if (agent.control.challenge->nonce() != agent.data.challenge->nonce()) return Verdict::ok();
  return Verdict::failed("a nonce of its own for each connection", "both are the same");
}

Verdict version(const Target& target) {
  PlayedAgent agent(target);
  wire::Hello hello = agent.hello(kControl);
  hello.set_min_version(kUnknownVersion);
  hello.set_max_version(kUnknownVersion);
  if (const Status step = agent.say_hello(kControl, hello); !step.ok()) return not_reached(step);
  return agent.refused(kControl, wire::REFUSE_VERSION);
}

Verdict version_range(const Target& target) {
  PlayedAgent agent(target);
  wire::Hello hello = agent.hello(kControl);
  hello.set_max_version(kUnknownVersion);
  Status step = agent.say_hello(kControl, hello);
  if (step.ok()) step = agent.prove(kControl);
  if (step.ok()) step = agent.expect_welcome(kControl);
  if (!step.ok()) return Verdict::failed("a Welcome for versions 2 to 1000", step.error().message);
  const uint32_t named = agent.control.welcome->version();
  if (named >= wire::kProtocolVersion && named <= kUnknownVersion) return Verdict::ok();
  return Verdict::failed("a version between 2 and 1000", fmt::format("Welcome names {}", named));
}

Verdict features(const Target& target) {
  PlayedAgent agent(target);
  for (const uint64_t offered : {uint64_t{0}, ~uint64_t{0}}) {
    wire::Hello hello = agent.hello(kControl);
    hello.set_features(offered);
    Status step = agent.say_hello(kControl, hello);
    if (step.ok()) step = agent.prove(kControl);
    if (step.ok()) step = agent.expect_welcome(kControl);
    if (!step.ok()) {
      return Verdict::failed("that unknown features are ignored", step.error().message);
    }
    const uint64_t agreed = agent.control.welcome->features();
    if ((agreed & ~(offered & kDefinedFeatures)) != 0) {
      return Verdict::failed("features that were offered and are defined",
                             fmt::format("Welcome has {}", agreed));
    }
  }
  return Verdict::ok();
}

Verdict data_first(const Target& target) {
  PlayedAgent agent(target);
  Status step = agent.say_hello(kData, agent.hello(kData));
  if (step.ok()) step = agent.prove(kData);
  const Verdict verdict = agent.refused(kData, wire::REFUSE_PROTOCOL);
  if (verdict.outcome != Outcome::kOk || agent.data.refuse->retry()) return verdict;
  return Verdict::failed("retry = true for data of an unknown process", "it is false");
}

Verdict opening_bound(const Target& target) {
  PlayedAgent agent(target);
  const Status step = agent.connect(kControl, agent.hello(kControl));
  if (!step.ok()) return not_reached(step);
  if (agent.wait([&] { return agent.control.is_over; }, kOpeningBound + target.settings.timeout)) {
    return Verdict::ok();
  }
  return Verdict::failed("that a connection without a Hello is closed after 5 s", "it stays open");
}

Verdict bad_hello(const Target& target) {
  wire::Hello channel = PlayedAgent(target).hello(kControl);
  channel.set_channel(wire::CHANNEL_UNSPECIFIED);
  wire::Hello id = PlayedAgent(target).hello(kControl);
  id.set_process_id("short");
  wire::Hello nonce = PlayedAgent(target).hello(kControl);
  nonce.set_nonce("");
  for (const wire::Hello& hello : {channel, id, nonce}) {
    PlayedAgent agent(target);
    if (const Status step = agent.say_hello(kControl, hello); !step.ok()) return not_reached(step);
    const Verdict verdict = agent.refused(kControl, wire::REFUSE_PROTOCOL);
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  return Verdict::ok();
}

Verdict pair_ends(const Target& target) {
  for (const wire::Channel ended : {kControl, kData}) {
    PlayedAgent agent(target);
    if (const Status step = agent.record(); !step.ok()) return not_reached(step);
    const wire::Channel other = ended == kControl ? kData : kControl;
    agent.channel(ended).link.close();
    agent.channel(ended).is_over = true;
    if (!agent.wait([&] { return agent.channel(other).is_over; },
                    kPairBound + target.settings.timeout)) {
      return Verdict::failed("that both connections end with one of them",
                             ended == kControl ? "data stays open" : "control stays open");
    }
  }
  return Verdict::ok();
}

Verdict replaced(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  PlayedAgent::Channel old = std::move(agent.control);
  if (const Status step = agent.open_channel(kControl); !step.ok()) {
    return Verdict::failed("a Welcome for a second control channel with the resume proof",
                           step.error().message);
  }
  const bool closed = agent.wait([&] {
    old.link.read_some();
    while (old.link.take()) {
    }
    return old.link.has_ended();
  });
  if (closed) return Verdict::ok();
  return Verdict::failed("that the replaced connection is closed", "it stays open");
}

Verdict resume_key(const Target& target) {
  PlayedAgent agent(target);
  if (const Status step = agent.open_channel(kControl); !step.ok()) return not_reached(step);
  if (agent.resume_key.size() != wire::kResumeKeyBytes) {
    return Verdict::failed("a resume key of 16 bytes in the first Welcome",
                           fmt::format("{} bytes came", agent.resume_key.size()));
  }
  PlayedAgent other(target);
  if (const Status step = other.open_channel(kControl); !step.ok()) return not_reached(step);
  if (other.resume_key != agent.resume_key) return Verdict::ok();
  return Verdict::failed("a resume key for each process", "two have the same");
}

// A known process that connects with this key in place of its own.
Verdict refuses_key(const Target& target, const std::string& key) {
  PlayedAgent agent(target);
  if (const Status step = agent.open(); !step.ok()) return not_reached(step);
  for (const wire::Channel channel : {kData, kControl}) {
    PlayedAgent again(target);
    again.process_id = agent.process_id;
    again.resume_key = key;
    Status step = again.say_hello(channel, again.hello(channel));
    if (step.ok()) step = again.prove(channel);
    if (!step.ok()) return not_reached(step);
    const Verdict verdict = again.refused(channel, wire::REFUSE_RESUME);
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  return Verdict::ok();
}

Verdict resume_missing(const Target& target) {
  return refuses_key(target, "");
}

Verdict resume_wrong(const Target& target) {
  return refuses_key(target, std::string(wire::kResumeKeyBytes, 'x'));
}

Verdict collector_token(const Target& target) {
  PlayedAgent agent(target);
  Status step = agent.say_hello(kControl, agent.hello(kControl));
  if (step.ok()) step = agent.prove(kControl);
  if (!step.ok()) return not_reached(step);
  const std::string& proof = agent.control.challenge->token_proof();
  if (target.settings.token.empty()) {
    if (proof.empty() || proof.size() == wire::kProofBytes) return Verdict::ok();
    return Verdict::failed("a token proof of 0 or 32 bytes", fmt::format("{} came", proof.size()));
  }
  wire::ProofContext context;
  context.channel = static_cast<uint8_t>(kControl);
  std::memcpy(context.process_id, agent.process_id.data(), wire::kProcessIdBytes);
  std::memcpy(context.agent_nonce, agent.control.nonce.data(), wire::kNonceBytes);
  std::memcpy(context.collector_nonce, agent.control.challenge->nonce().data(), wire::kNonceBytes);
  const auto bytes = [](const std::string& text) {
    return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  if (wire::check_proof(wire::ProofKind::kCollectorToken, bytes(target.settings.token), context,
                        bytes(proof))) {
    return Verdict::ok();
  }
  return Verdict::failed("the collector's proof of the token",
                         proof.empty() ? "the Challenge has none" : "it is wrong");
}

Verdict agent_token(const Target& target) {
  if (target.settings.token.empty()) {
    return Verdict::skipped("without --token-file, the collector has no token that is known here");
  }
  for (const std::string& token : {std::string(), target.settings.token + "x"}) {
    Target without = target;
    without.settings.token = token;
    PlayedAgent agent(without);
    Status step = agent.say_hello(kControl, agent.hello(kControl));
    if (step.ok()) step = agent.prove(kControl);
    if (!step.ok()) return not_reached(step);
    const Verdict verdict = agent.refused(kControl, wire::REFUSE_TOKEN);
    if (verdict.outcome != Outcome::kOk) return verdict;
  }
  return Verdict::ok();
}

constexpr std::string_view kOpening = "Opening a connection";

constexpr auto kChecks = std::to_array<CollectorCheck>({
    {{"opening", kOpening, "Challenge answers Hello, Welcome of version 2 answers Proof"}, opening},
    {{"slow-opening", kOpening, "Hello and Proof may come byte by byte"}, slow_opening},
    {{"fresh-nonces", kOpening, "each connection has a nonce of its own"}, fresh_nonces},
    {{"bad-hello", kOpening, "a Hello without channel, process id or nonce is refused"}, bad_hello},
    {{"version", kOpening, "versions without a common one are refused with VERSION"}, version},
    {{"version-range", kOpening, "of a range of versions, one that both know is named"},
     version_range},
    {{"features", kOpening, "unknown features are ignored, agreed ones were offered"}, features},
    {{"data-first", kOpening, "data of an unknown process is refused with PROTOCOL, retry"},
     data_first},
    {{"opening-bound", kOpening, "a connection without a Hello is closed"}, opening_bound},
    {{"pair-ends", kOpening, "when one connection ends, the other one is closed"}, pair_ends},
    {{"channel-replaced", kOpening, "a Hello with the resume proof replaces its channel"},
     replaced},
    {{"resume-key", "Proofs", "a new process is given a resume key"}, resume_key},
    {{"resume-proof-missing", "Proofs", "a known process without the proof is refused"},
     resume_missing},
    {{"resume-proof-wrong", "Proofs", "a known process with a wrong proof is refused"},
     resume_wrong},
    {{"collector-token", "Proofs", "the collector proves that it knows the token"},
     collector_token},
    {{"agent-token", "Proofs", "an agent that does not prove the token is refused with TOKEN"},
     agent_token},
});

}  // namespace

std::span<const CollectorCheck> collector_opening_checks() {
  return kChecks;
}

}  // namespace collect::conformance
