#include "proto/wire/proof.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

namespace collect::wire {
namespace {

constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_be(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 |
         static_cast<uint32_t>(at[2]) << 8 | static_cast<uint32_t>(at[3]);
}

void store_be(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 24);
  at[1] = static_cast<uint8_t>(value >> 16);
  at[2] = static_cast<uint8_t>(value >> 8);
  at[3] = static_cast<uint8_t>(value);
}

// Each ends with its zero byte, so none is the beginning of another.
constexpr char kCollectorToken[] = "collect-wire collector token";
constexpr char kAgentToken[] = "collect-wire agent token";
constexpr char kAgentResume[] = "collect-wire agent resume";

constexpr size_t kMaxLabelBytes = sizeof kCollectorToken;
constexpr size_t kContextBytes = 2 + kProcessIdBytes + 2 * kNonceBytes;

// The message of a proof, and its size.
size_t proof_message(ProofKind kind, const ProofContext& context, uint8_t* out) {
  const char* label = kCollectorToken;
  size_t size = sizeof kCollectorToken;
  if (kind == ProofKind::kAgentToken) {
    label = kAgentToken;
    size = sizeof kAgentToken;
  } else if (kind == ProofKind::kAgentResume) {
    label = kAgentResume;
    size = sizeof kAgentResume;
  }
  std::memcpy(out, label, size);
  out[size++] = context.dialled ? 1 : 0;
  out[size++] = context.channel;
  std::memcpy(out + size, context.process_id, kProcessIdBytes);
  size += kProcessIdBytes;
  std::memcpy(out + size, context.agent_nonce, kNonceBytes);
  size += kNonceBytes;
  std::memcpy(out + size, context.collector_nonce, kNonceBytes);
  return size + kNonceBytes;
}

}  // namespace

void Sha256::take_block(const uint8_t* block) {
  uint32_t words[64];
  for (size_t i = 0; i < 16; ++i) words[i] = load_be(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t low = words[i - 15];
    const uint32_t high = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (std::rotr(low, 7) ^ std::rotr(low, 18) ^ (low >> 3)) +
               (std::rotr(high, 17) ^ std::rotr(high, 19) ^ (high >> 10));
  }
  uint32_t v[8];
  std::memcpy(v, state_, sizeof v);
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t e = v[4];
    const uint32_t a = v[0];
    const uint32_t one = v[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + kRoundConstants[i] + words[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                         ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    std::shift_right(std::begin(v), std::end(v), 1);
    v[4] += one;
    v[0] = one + two;
  }
  for (size_t i = 0; i < 8; ++i) state_[i] += v[i];
}

void Sha256::update(Bytes bytes) {
  for (const uint8_t byte : bytes) {
    block_[bytes_ % kBlockBytes] = byte;
    ++bytes_;
    if (bytes_ % kBlockBytes == 0) take_block(block_);
  }
}

void Sha256::finish(uint8_t digest[kDigestBytes]) {
  const uint64_t bits = bytes_ * 8;
  constexpr uint8_t kEnd = 0x80;
  constexpr uint8_t kZero = 0;
  update(Bytes(&kEnd, 1));
  while (bytes_ % kBlockBytes != kBlockBytes - 8) update(Bytes(&kZero, 1));
  uint8_t length[8];
  store_be(length, static_cast<uint32_t>(bits >> 32));
  store_be(length + 4, static_cast<uint32_t>(bits));
  update(Bytes(length, sizeof length));
  for (size_t i = 0; i < 8; ++i) store_be(digest + 4 * i, state_[i]);
}

void hmac_sha256(Bytes key, Bytes message, uint8_t digest[Sha256::kDigestBytes]) {
  uint8_t block[Sha256::kBlockBytes] = {};
  if (key.size() > sizeof block) {
    Sha256 shorter;
    shorter.update(key);
    shorter.finish(block);
  } else if (!key.empty()) {
    std::memcpy(block, key.data(), key.size());
  }
  for (uint8_t& byte : block) byte ^= 0x36;
  Sha256 inner;
  inner.update(Bytes(block, sizeof block));
  inner.update(message);
  inner.finish(digest);
  for (uint8_t& byte : block) byte ^= 0x36 ^ 0x5c;
  Sha256 outer;
  outer.update(Bytes(block, sizeof block));
  outer.update(Bytes(digest, Sha256::kDigestBytes));
  outer.finish(digest);
}

void make_proof(ProofKind kind, Bytes secret, const ProofContext& context,
                uint8_t proof[kProofBytes]) {
  static_assert(kProofBytes == Sha256::kDigestBytes);
  uint8_t message[kMaxLabelBytes + kContextBytes];
  const size_t size = proof_message(kind, context, message);
  hmac_sha256(secret, Bytes(message, size), proof);
}

bool check_proof(ProofKind kind, Bytes secret, const ProofContext& context, Bytes proof) {
  if (proof.size() != kProofBytes) return false;
  uint8_t wanted[kProofBytes];
  make_proof(kind, secret, context, wanted);
  uint8_t difference = 0;
  for (size_t i = 0; i < kProofBytes; ++i) {
    difference = static_cast<uint8_t>(difference | (wanted[i] ^ proof[i]));
  }
  return difference == 0;
}

}  // namespace collect::wire
