#include "storage/model/switch_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128_values.h"
#include "storage/fs/whole_file.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr size_t kFrameHeadBytes = 8;
constexpr uint64_t kPreemptedBit = 1;
constexpr uint64_t kJoinedBit = 2;
constexpr uint64_t kLockBit = 4;
constexpr uint64_t kSampleBit = 8;
constexpr size_t kSwitchesPerFrame = 4096;
// The largest encodings of a frame, and of as many times as are listed.
constexpr size_t kMaxTimeBytes = 8 * kLeb128MaxBytes;
static_assert(kSwitchesPerFrame * kMaxTimeBytes <= kMaxSwitchFrameBytes);
constexpr size_t kMaxSwitchesFileBytes =
    kMaxSwitchesListed * (kMaxTimeBytes + kFrameHeadBytes);  // a frame for each

uint64_t kind_bits(StallKind kind) {
  if (kind == StallKind::kLock) return kLockBit;
  if (kind == StallKind::kSample) return kSampleBit;
  return kind == StallKind::kPreempted ? kPreemptedBit : 0;
}

std::optional<StallKind> kind_of(uint64_t bits) {
  for (const StallKind kind :
       {StallKind::kBlocked, StallKind::kPreempted, StallKind::kLock, StallKind::kSample}) {
    if (kind_bits(kind) == bits) return kind;
  }
  return std::nullopt;
}

void append_frame(std::vector<uint8_t>& to, std::span<const Stall> switches) {
  const size_t head = to.size();
  to.resize(head + kFrameHeadBytes);
  uint64_t before_ns = 0;
  for (const Stall& stall : switches) {
    const bool is_joined = stall.count != 1 || stall.stalled_ns != stall.last_ns - stall.first_ns;
    append_uleb128(to, stall.thread.value_or(0));
    append_uleb128(to, kind_bits(stall.kind) | (is_joined ? kJoinedBit : 0));
    append_sleb128(to, static_cast<int64_t>(stall.first_ns - before_ns));
    append_uleb128(to, stall.last_ns - stall.first_ns);
    if (is_joined) {
      append_uleb128(to, stall.count);
      append_uleb128(to, stall.stalled_ns);
    }
    if (stall.kind == StallKind::kLock || stall.kind == StallKind::kSample) {
      append_uleb128(to, stall.place);
    }
    if (stall.kind == StallKind::kLock) append_uleb128(to, stall.owner);
    before_ns = stall.first_ns;
  }
  const auto bytes = static_cast<uint32_t>(to.size() - head - kFrameHeadBytes);
  store_le(to.data() + head + 4, bytes);
  store_le(to.data() + head, crc32c(Bytes(to).subspan(head + 4)));
}

// The times of the frame that `bytes` begin with; nothing where it does not hold or is cut.
std::optional<Bytes> frame_at(Bytes bytes) {
  if (bytes.size() < kFrameHeadBytes) return std::nullopt;
  const auto size = load_le<uint32_t>(bytes.data() + 4);
  if (size > kMaxSwitchFrameBytes || size > bytes.size() - kFrameHeadBytes) return std::nullopt;
  const Bytes checked = bytes.subspan(4, 4 + size_t{size});
  if (crc32c(checked) != load_le<uint32_t>(bytes.data())) return std::nullopt;
  return checked.subspan(4);
}

bool decode_frame(Bytes times, std::vector<Stall>& out) {
  Leb128Values values(times);
  uint64_t first_ns = 0;
  while (!values.left().empty()) {
    Stall stall;
    const uint64_t thread = values.next();
    const uint64_t what = values.next();
    first_ns += static_cast<uint64_t>(values.next_signed());
    stall.thread = static_cast<uint32_t>(thread);
    const std::optional<StallKind> kind = kind_of(what & ~kJoinedBit);
    stall.kind = kind.value_or(StallKind::kBlocked);
    stall.first_ns = first_ns;
    stall.last_ns = first_ns + values.next();
    stall.stalled_ns = stall.last_ns - first_ns;
    if ((what & kJoinedBit) != 0) {
      stall.count = values.next();
      stall.stalled_ns = values.next();
    }
    uint64_t owner = 0;
    if (kind == StallKind::kLock || kind == StallKind::kSample) stall.place = values.next();
    if (kind == StallKind::kLock) owner = values.next();
    stall.owner = static_cast<uint32_t>(owner);
    const bool is_possible = kind && thread <= UINT32_MAX && owner <= UINT32_MAX &&
                             stall.last_ns >= first_ns && stall.count != 0 &&
                             stall.stalled_ns <= stall.last_ns - first_ns;
    if (!values.ok() || !is_possible) return false;
    if (out.size() < kMaxSwitchesListed) out.push_back(stall);
  }
  return true;
}

}  // namespace

std::vector<uint8_t> encode_switches(std::span<const Stall> switches) {
  std::vector<uint8_t> frames;
  while (!switches.empty()) {
    const auto of_frame = switches.first(std::min(switches.size(), kSwitchesPerFrame));
    append_frame(frames, of_frame);
    switches = switches.subspan(of_frame.size());
  }
  return frames;
}

size_t whole_switch_frames(Bytes bytes) {
  size_t whole = 0;
  while (const auto times = frame_at(bytes.subspan(whole))) {
    whole += kFrameHeadBytes + times->size();
  }
  return whole;
}

Status decode_switches(Bytes bytes, std::vector<Stall>& out) {
  for (size_t at = 0; at < bytes.size();) {
    const auto times = frame_at(bytes.subspan(at));
    const size_t before = out.size();
    if (!times || !decode_frame(*times, out)) {
      out.resize(before);
      return Error{Code::kDamaged, fmt::format("offset {}: no frame of switches", at)};
    }
    at += kFrameHeadBytes + times->size();
  }
  return {};
}

Status read_switches(Fs& fs, const std::string& directory, std::vector<Stall>& out) {
  const std::string path = fmt::format("{}/{}", directory, kSwitchesFile);
  const auto bytes = read_whole_file(fs, path, kMaxSwitchesFileBytes);
  if (!bytes.ok()) return bytes.code() == Code::kNotFound ? Status() : Status(bytes.error());
  const Status decoded =
      decode_switches({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()}, out);
  return decoded.ok() ? decoded : Error{decoded.code(), path + ": " + decoded.error().message};
}

}  // namespace collect::storage
