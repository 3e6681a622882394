// The proofs of WIRE.md, made with OpenSSL from the page alone: shares no code with proto/wire, so
// that both ends are held against something else than each other.
#pragma once

#include <string>

#include "proto/wire/wire.pb.h"

namespace collect::fakes {

// What an agent knows; empty: nothing.
struct Secrets {
  std::string token;
  std::string resume_key;
};

std::string fresh_nonce();  // 16 random bytes

// `label` without its zero byte.
std::string proof_of(const std::string& label, const std::string& secret, const wire::Hello& hello,
                     const std::string& collector_nonce, bool dialled);

wire::Challenge challenge_for(const wire::Hello& hello, const std::string& token, bool dialled);
bool collector_knows(const std::string& token, const wire::Hello& hello,
                     const wire::Challenge& challenge, bool dialled);
wire::Proof proof_for(const wire::Hello& hello, const wire::Challenge& challenge,
                      const Secrets& secrets, bool dialled);

}  // namespace collect::fakes
