// Who this process is and how it proves that: the Hello, the token, the resume key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/settings.h"
#include "proto/wire/proof.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr char kNoToken[] =
    "the token file can't be read, or holds no token of 1 to 256 bytes";
inline constexpr char kNoRandomness[] = "the system gives no random bytes";

// Collectors whose resume key is kept; beyond, the oldest key goes.
inline constexpr uint32_t kMaxResumeKeys = 8;

// What the two sides drew for one connection, and which collector the other side is.
struct Nonces {
  uint8_t agent[wire::kNonceBytes] = {};
  uint8_t collector[wire::kNonceBytes] = {};
  uint8_t collector_id[wire::kCollectorIdBytes] = {};  // zeros: it does not say

  bool are_of_one_collector(const Nonces& other) const;
};

// Drain thread only, but for prepare(). Nothing allocates.
class ProcessIdentity {
 public:
  // Draws a process id and reads what the system says about the process. Once per process: a forked
  // child is another one.
  void prepare(const Settings& settings);

  // The token file's content without surrounding white space, or the key of the run. Called at each
  // connection, so that a new token needs no restart. False: a token file is set, and holds no
  // token.
  bool read_token();
  // False: the system has no randomness for this process, and the token could be misused: a peer
  // that can guess a nonce can have a proof ready that the true collector gave for another
  // connection.
  bool draw_nonce(uint8_t nonce[wire::kNonceBytes]) const;

  // As it is to be sent now.
  const collect_wire_Hello& hello(bool data, const uint8_t nonce[wire::kNonceBytes]);
  // Takes the collector's nonce. Null, or why this is no collector of ours, with the code for it.
  const char* judge_challenge(bool data, Nonces& nonces, Bytes body,
                              collect_wire_RefuseCode& code) const;
  void prove(bool data, const Nonces& nonces, collect_wire_Proof& proof) const;

  // Keeps the key of the collector at the other end: each has one of its own.
  void keep_resume_key(const Nonces& nonces, const uint8_t key[wire::kResumeKeyBytes]);
  // The collector knows this process and does not believe that it is this one. What is still held
  // goes there as the recording of a process that is new, which no collector knows.
  void become_another();

  bool has_token() const { return token_bytes_ != 0; }
  uint64_t features() const { return hello_.features; }
  uint64_t seed() const { return load_le<uint64_t>(hello_.process_id); }

 private:
  struct ResumeKey {
    bool used;
    uint8_t collector_id[wire::kCollectorIdBytes];
    uint8_t key[wire::kResumeKeyBytes];
  };

  wire::ProofContext context_of(bool data, const Nonces& nonces) const;
  const ResumeKey* resume_key_of(const Nonces& nonces) const;
  void forget_resume_keys();

  const Settings* settings_ = nullptr;
  collect_wire_Hello hello_;
  uint8_t token_[wire::kMaxTokenBytes];
  size_t token_bytes_ = 0;  // 0: none
  // Keys of the collectors that welcomed this process as a new one.
  ResumeKey resume_keys_[kMaxResumeKeys];
  uint32_t next_key_ = 0;  // its place is taken by the next one
};

}  // namespace collect::agent
