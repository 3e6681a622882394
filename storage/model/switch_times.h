// switches.bin of a session: each time in which a thread was off the processor, each wait for a
// lock, and each sample of where it ran, as frames in the order of arrival. A frame is whole or it
// is not there, and needs none before it.
//
//   frame   u32 CRC-32C of what follows, u32 bytes of the times; the times
//   time    uleb128 thread (N of thread_N), uleb128 what, sleb128 first_ns less that of the time
//           before it in the frame (0 at its begin), uleb128 last_ns - first_ns; if several were
//           joined, uleb128 count, uleb128 their sum in ns
//   what    bit 0: preempted, not blocked; bit 1: joined; bit 2: a wait for a lock; bit 3: a sample
//   behind all this
//           of a wait for a lock: uleb128 its address, uleb128 number of who had it (0: not known)
//           of a sample: uleb128 where the thread ran, as a function's id
//
// Little-endian. STORAGE.md "Times off the processor".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// Of a session: further ones are counted, and not listed.
inline constexpr size_t kMaxSwitchesListed = size_t{1} << 23;
inline constexpr size_t kMaxSwitchFrameBytes = size_t{1} << 20;

// As many frames as they need; each time has a thread.
std::vector<uint8_t> encode_switches(std::span<const Stall> switches);

// How many of the first bytes are whole frames, none of them larger than kMaxSwitchFrameBytes.
size_t whole_switch_frames(Bytes bytes);

// Adds the times of the frames; at most kMaxSwitchesListed are in `out` then. kDamaged: where the
// first frame is that does not hold; the times before it are there.
Status decode_switches(Bytes bytes, std::vector<Stall>& out);

// Adds those of a session's directory; none where there is no file. As decode_switches().
Status read_switches(Fs& fs, const std::string& directory, std::vector<Stall>& out);

}  // namespace collect::storage
