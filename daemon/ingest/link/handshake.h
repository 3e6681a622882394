// What must hold for a hello before anything is done for its sender, and the agent and the session
// that it describes. Pure functions on messages of wire.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/link/verdict.h"
#include "daemon/principal/principal.h"
#include "proto/wire/proof.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/resume_key.h"

namespace collect::ingest {

// A hello whose sender has answered the challenge; whether it may continue as a process that is
// known is for the owner of that process to say.
struct CheckedHello {
  wire::Hello hello;
  wire::ProofContext context;
  std::string resume_proof;
};

// Empty: the hello can be served.
std::optional<Refusal> check_untrusted_hello(const wire::Hello& hello);
// The refusal where random bytes could not be drawn.
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
// Empty: the sender of the hello is the process that `key` was given to.
std::optional<Refusal> check_resume(const storage::ResumeKey& key, const CheckedHello& checked,
                                    const principal::Principal& principal);

ProcessId process_id_of(const wire::Hello& hello);  // after the check
AgentSnapshot agent_from_hello(const wire::Hello& hello);
storage::SessionIdentity identity_from(const wire::Hello& hello, const wire::RecordingStart& start);
// A session found on disk has an agent that is away.
AgentSnapshot agent_from_identity(const storage::SessionIdentity& identity);

}  // namespace collect::ingest
