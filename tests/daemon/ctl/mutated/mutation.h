// Captures of each format, and nearly right ones made of them: bits, lengths and counts changed,
// parts cut out, doubled, exchanged, taken from other captures; then the format's own checksums and
// lengths are put right again, so that what was changed is read and not refused at the door.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "formats/core/crc32.h"

namespace collect::ctl::testing {

using Octets = std::vector<uint8_t>;

enum class Kind : uint8_t { kAtf1, kAtf2, kRtc, kWtf, kWtfJson, kDial9, kWirePages };
const char* kind_name(Kind kind);

// A capture: by relative path the bytes of its files. A session is a pid directory's files; every
// other format has one file, "capture".
struct Capture {
  std::map<std::string, Octets> files;
};
inline constexpr const char* kSingleFile = "capture";

// As the wire's functions take it.
inline uint32_t frame_crc(Bytes bytes, uint32_t previous) {
  return crc32c(bytes, previous);
}

// Made by our own writers below `scratch`, which is left empty. Several of each kind.
std::vector<Capture> captures_of(Kind kind, const std::string& scratch);

// The `number`th mutation of a run: the same for the same seed, captures and number.
class Mutator {
 public:
  Mutator(Kind kind, std::vector<Capture> captures, uint64_t seed)
      : kind_(kind), captures_(std::move(captures)), seed_(seed) {}

  Capture mutation(uint64_t number);
  // The dice of the last mutation, for what is done with it.
  std::mt19937_64& random() { return random_; }

 private:
  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool one_in(uint64_t times) { return below(times) == 0; }

  void change_bytes(Octets& bytes);
  void change_number(Octets& bytes);
  void move_range(Octets& bytes);
  void change_files(Capture& capture);
  void change_json(Octets& bytes);
  void repair(Octets& bytes);
  void repair_atf(Octets& bytes);
  void repair_rtc(Octets& bytes);
  void repair_wtf(Octets& bytes);
  void repair_page(Octets& bytes);
  Octets zipped(const Octets& bytes);

  const Kind kind_;
  const std::vector<Capture> captures_;
  const uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace collect::ctl::testing
