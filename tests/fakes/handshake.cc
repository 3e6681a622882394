#include "tests/fakes/handshake.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace collect::fakes {

std::string fresh_nonce() {
  std::string nonce(16, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), 16) != 1) nonce.clear();
  return nonce;
}

std::string proof_of(const std::string& label, const std::string& secret, const wire::Hello& hello,
                     const std::string& collector_nonce, bool dialled) {
  std::string message = label;
  message += '\0';
  message += static_cast<char>(dialled ? 1 : 0);
  message += static_cast<char>(hello.channel());
  message += hello.process_id() + hello.nonce() + collector_nonce;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &bytes);
  return {reinterpret_cast<const char*>(digest), bytes};
}

wire::Challenge challenge_for(const wire::Hello& hello, const std::string& token, bool dialled) {
  wire::Challenge challenge;
  challenge.set_nonce(fresh_nonce());
  if (!token.empty()) {
    challenge.set_token_proof(
        proof_of("collect-wire collector token", token, hello, challenge.nonce(), dialled));
  }
  return challenge;
}

bool collector_knows(const std::string& token, const wire::Hello& hello,
                     const wire::Challenge& challenge, bool dialled) {
  return challenge.token_proof() ==
         proof_of("collect-wire collector token", token, hello, challenge.nonce(), dialled);
}

wire::Proof proof_for(const wire::Hello& hello, const wire::Challenge& challenge,
                      const Secrets& secrets, bool dialled) {
  wire::Proof proof;
  if (!secrets.token.empty()) {
    proof.set_token_proof(
        proof_of("collect-wire agent token", secrets.token, hello, challenge.nonce(), dialled));
  }
  if (!secrets.resume_key.empty()) {
    proof.set_resume_proof(proof_of("collect-wire agent resume", secrets.resume_key, hello,
                                    challenge.nonce(), dialled));
  }
  return proof;
}

}  // namespace collect::fakes
