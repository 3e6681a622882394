// Whether pages are encoded for the way: unless the link is faster than the encoder. AGENT.md
// "Pages on the way" has the rule.
//
// The link is measured while it is the bottleneck and at no other time: between two moments in
// which the socket was full, with something to send all along, what went in is what came out at the
// other end. Drain thread only; events and times are passed in, it reads no clock.
#pragma once

#include <cstdint>

namespace collect::agent {

inline constexpr uint64_t kMeasureNs = 50'000'000;  // of a full socket, before it is judged
// Before it is believed how fast the encoder is.
inline constexpr uint64_t kMeasureEncodedBytes = 1u << 20;

class CodecChoice {
 public:
  // A new link, of which nothing is known yet. `agreed`: the collector takes encoded pages.
  void begin_link(bool agreed);

  // Whether the next page should be encoded.
  bool encodes() const { return encodes_; }

  // Bytes went into the socket. Now and then is enough.
  void sent(uint64_t bytes) { since_full_ += bytes; }
  // The socket takes no more.
  void blocked(uint64_t now_ns);
  // There is nothing left to send: the socket empties by itself, and the next full one begins a new
  // measurement.
  void idle() { was_full_ = false; }
  void encoded(uint64_t raw_bytes, uint64_t took_ns);

  // Bytes a second, as last measured; 0 before.
  uint64_t link_rate() const { return link_rate_; }
  uint64_t encoder_rate() const;

 private:
  void judge();

  bool agreed_ = false;
  bool encodes_ = false;
  uint64_t link_rate_ = 0;

  // The measurement under way.
  bool was_full_ = false;
  uint64_t full_ns_ = 0;      // when the socket was last full
  uint64_t since_full_ = 0;   // bytes since then
  uint64_t measured_ns_ = 0;  // of full sockets, …
  uint64_t measured_bytes_ = 0;

  uint64_t encoded_bytes_ = 0;
  uint64_t encoded_ns_ = 0;
};

}  // namespace collect::agent
