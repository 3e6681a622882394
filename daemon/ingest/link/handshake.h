// What must hold for a hello before anything is done for its sender, and how its words become ours.
// Pure functions on messages of wire.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/ingest/link/snapshot.h"
#include "daemon/principal/principal.h"
#include "formats/core/result.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/proof.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/resume_key.h"

namespace collect::ingest {

struct Refusal {
  wire::RefuseCode code{};
  std::string reason;
  bool retry = false;
};
// Of a frame; empty: the connection goes on.
using Verdict = std::optional<Refusal>;
inline Refusal violation(std::string what) {
  return {wire::REFUSE_PROTOCOL, std::move(what), true};
}
// The principal has too much: the connection ends, and may come again.
inline Refusal over_budget(std::string what) {
  return {wire::REFUSE_LIMIT, std::move(what), true};
}

// A hello whose sender has answered the challenge; whether it may go on as a process that is known
// is for the owner of that process to say.
struct CheckedHello {
  wire::Hello hello;
  wire::ProofContext context;
  std::string resume_proof;
};

// Empty: the hello can be served.
std::optional<Refusal> check_untrusted_hello(const wire::Hello& hello);
// The refusal of whatever could not be drawn.
Refusal no_randomness();
// Draws the collector's nonce; empty without randomness, which is our own machine's fault.
std::optional<wire::ProofContext> begin_proofs(const wire::Hello& hello, bool dialled);
wire::Challenge challenge_for(const wire::ProofContext& context, std::string_view token,
                              const storage::CollectorIdentity& collector);
// Empty: the sender knows the token, or none is asked for.
std::optional<Refusal> check_token(const wire::Proof& proof, const wire::ProofContext& context,
                                   std::string_view token);

// For a process that is new here. Empty: the machine gives no random bytes.
std::optional<storage::ResumeKey> make_resume_key(const principal::Principal& principal);
// Empty: whoever said the hello is the process that `key` was given to.
std::optional<Refusal> check_resume(const storage::ResumeKey& key, const CheckedHello& checked,
                                    const principal::Principal& principal);

DetailMode detail_mode(int untrusted_mode);
ProcessId process_id_of(const wire::Hello& hello);  // after the check
AgentSnapshot agent_from_hello(const wire::Hello& hello);
storage::SessionIdentity identity_from(const wire::Hello& hello, const wire::RecordingStart& start);
// A session found on disk has an agent that is away.
AgentSnapshot agent_from_identity(const storage::SessionIdentity& identity);

std::vector<storage::ModuleInfo> to_storage(const wire::Modules& modules);
storage::StreamInfo to_storage(const wire::StreamOpen& stream);
storage::StreamEnd to_storage(const wire::StreamClose& stream);
storage::DetailStateChange to_storage(const wire::DetailState& change);
storage::ProcessEnd to_storage(const wire::ProcessEnd& end);
// Empty: of a kind that this version does not know. kDamaged: its times contradict each other.
Result<std::optional<storage::Stall>> to_storage(const wire::Stall& stall);
void set_position(const storage::StreamPosition& known, wire::StreamPosition& position);

// The frame's message; kDamaged when its bytes are no such message.
template <class Message>
Result<Message> parse_body(const wire::Frame& frame) {
  Message message;
  if (!message.ParseFromArray(frame.body.data(), static_cast<int>(frame.body.size()))) {
    return Error{Code::kDamaged, "frame type " + std::to_string(static_cast<unsigned>(frame.type)) +
                                     ": the body is no " + message.GetTypeName()};
  }
  return message;
}

// Of a frame's message, or of bytes that are none.
template <class Part, class Message>
Verdict verdict_on(const wire::Frame& frame, Part& part, Verdict (Part::*judge)(const Message&)) {
  const Result<Message> message = parse_body<Message>(frame);
  if (!message.ok()) return violation(message.error().message);
  return (part.*judge)(*message);
}
inline Refusal misplaced(const wire::Frame& frame, const char* channel) {
  return violation("frame type " + std::to_string(static_cast<unsigned>(frame.type)) +
                   " does not belong on the " + channel + " channel");
}

}  // namespace collect::ingest
