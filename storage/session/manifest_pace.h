// How often a session's manifest may be written anew. A manifest is written whole, so what a peer
// sends to change it may be a thousand times smaller than what is written for it.
//
// The rule: manifests take kManifestBytesPerSecond, and a quarter of what the records take, beyond
// a burst of kManifestBurstBytes. Who goes into debt waits until it is paid.
//
// Owned by its Session, used on the storage thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace collect::storage {

inline constexpr uint64_t kManifestBytesPerSecond = 4u << 20;
inline constexpr uint64_t kManifestBurstBytes = 16u << 20;
// Names and directory blocks that are written with every manifest, however short it is.
inline constexpr uint64_t kManifestFixedBytes = 4096;
inline constexpr uint64_t kDataBytesPerManifestByte = 4;

class ManifestPace {
 public:
  // How long the next manifest waits; 0: not at all.
  uint64_t wait_ns(uint64_t now_ns) const {
    const int64_t credit = credit_at(now_ns);
    if (credit > 0) return 0;
    return (static_cast<uint64_t>(-credit) + 1) * kNsPerSecond / kManifestBytesPerSecond;
  }
  void written(uint64_t bytes, uint64_t now_ns) {
    credit_ = credit_at(now_ns) - static_cast<int64_t>(bytes + kManifestFixedBytes);
    at_ns_ = now_ns;
  }
  void data(uint64_t bytes) {
    credit_ = std::min(credit_ + static_cast<int64_t>(bytes / kDataBytesPerManifestByte), kBurst);
  }

 private:
  static constexpr uint64_t kNsPerSecond = 1'000'000'000;
  static constexpr auto kBurst = static_cast<int64_t>(kManifestBurstBytes);

  int64_t credit_at(uint64_t now_ns) const {
    const uint64_t passed_ns = now_ns > at_ns_ ? now_ns - at_ns_ : 0;
    // Beyond this the burst is full again, whatever was owed: a manifest has 256 MiB at most.
    if (passed_ns > 128 * kNsPerSecond) return kBurst;
    const uint64_t earned = passed_ns * (kManifestBytesPerSecond >> 10) / (kNsPerSecond >> 10);
    return std::min(credit_ + static_cast<int64_t>(earned), kBurst);
  }

  int64_t credit_ = kBurst;  // bytes, at at_ns_
  uint64_t at_ns_ = 0;
};

}  // namespace collect::storage
