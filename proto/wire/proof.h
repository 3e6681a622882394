// How agent and collector prove that they know a secret, without sending it: WIRE.md "Proofs".
// Used by both ends: no allocation, no exceptions, no library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"

namespace collect::wire {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kProcessIdBytes = 16;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kResumeKeyBytes = 16;
inline constexpr size_t kCollectorIdBytes = 16;
inline constexpr size_t kMaxTokenBytes = 256;

// SHA-256 as in FIPS 180-4. For the few hundred bytes of a handshake; not made for speed.
class Sha256 {
 public:
  static constexpr size_t kBlockBytes = 64;
  static constexpr size_t kDigestBytes = 32;

  void update(Bytes bytes);
  void finish(uint8_t digest[kDigestBytes]);  // once, at the end

 private:
  void take_block(const uint8_t* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t block_[kBlockBytes] = {};
  uint64_t bytes_ = 0;
};

// HMAC-SHA-256 as in RFC 2104; the key has any length.
void hmac_sha256(Bytes key, Bytes message, uint8_t digest[Sha256::kDigestBytes]);

// What each kind of proof shows. No kind can stand for another one.
enum class ProofKind : uint8_t { kCollectorToken, kAgentToken, kAgentResume };

// What a connection's proofs are bound to. A proof of one connection holds on no other.
struct ProofContext {
  bool dialled = false;  // the collector connected
  uint8_t channel = 0;   // number of the Channel
  uint8_t process_id[kProcessIdBytes] = {};
  uint8_t agent_nonce[kNonceBytes] = {};
  uint8_t collector_nonce[kNonceBytes] = {};
};

void make_proof(ProofKind kind, Bytes secret, const ProofContext& context,
                uint8_t proof[kProofBytes]);
// Whether `proof` is that of `secret`. Takes the same time for every proof of this length.
bool check_proof(ProofKind kind, Bytes secret, const ProofContext& context, Bytes proof);

}  // namespace collect::wire
