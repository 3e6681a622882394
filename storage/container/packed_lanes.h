// The thread files of a packed session: the session has its containers and this table, which says
// where in them each page of a file is. So a file is read piece by piece, at any place, without
// those before it. STORAGE.md "Packed sessions".
//
//   lanes.packed   "collect lanes 1\n", u64 bytes behind this head, u32 CRC-32C of them, u32 lanes
//   lane           u32 thread, u32 lane, u64 file_bytes, u32 file_crc32c, u32 head_bytes,
//                  u32 tail_bytes, u32 pieces, u32 container, u32 0; the file's first and last
//                  bytes
//   piece          u64 offset, u32 span, u32 bytes
//
// Little-endian. Between head and tail the file is its pieces, one behind another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// Of a thread file, in a page of the container, so that a reader decodes as much at once.
inline constexpr uint64_t kPackedPageBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMaxPackedLanesBytes = uint64_t{1} << 30;
inline constexpr uint32_t kMaxPackedEndBytes = 128;  // of a head or a tail: a header, a footer

// The records of one page.
struct PackedPiece {
  uint64_t offset = 0;  // of the page's object in the container
  uint32_t span = 0;    // from the object's first byte to the last of its frames
  uint32_t bytes = 0;   // of the records
};

struct PackedLane {
  uint32_t thread = 0;  // N of thread_N
  Lane lane = Lane::kIndex;
  uint32_t container = 0;  // its number
  uint64_t file_bytes = 0;
  uint32_t file_crc32c = 0;
  std::vector<uint8_t> head, tail;
  std::vector<PackedPiece> pieces;
  std::vector<uint64_t> places;  // where in the file each piece begins

  // Makes `places`. False: the pieces are not what the file has between head and tail.
  bool place_pieces();
};

// By thread, index before detail.
class PackedLanes {
 public:
  PackedLanes() = default;
  explicit PackedLanes(std::vector<PackedLane> lanes) : lanes_(std::move(lanes)) {}
  // kDamaged, kTruncated: no such table, or not the whole of one.
  static Result<PackedLanes> decode(Bytes table);
  std::string encode() const;

  const std::vector<PackedLane>& lanes() const { return lanes_; }
  const PackedLane* find(uint32_t thread, Lane lane) const;  // null: there is none

 private:
  std::vector<PackedLane> lanes_;
};

// Bytes of a container, fewer than asked for only at its end. They are where they always were, or
// in `buffer`.
using ReadContainer = std::function<Result<Bytes>(uint32_t container, uint64_t offset, size_t bytes,
                                                  std::vector<uint8_t>& buffer)>;

// Bytes of a thread file. All of them, or an error: kDamaged where a container does not have the
// page any more. Any thread, as far as `read` allows it.
Status read_packed(const PackedLane& lane, uint64_t offset, MutableBytes out,
                   const ReadContainer& read);

// The table of a session's directory; absent: it has none.
Result<std::optional<PackedLanes>> read_packed_lanes(Fs& fs, const std::string& directory);

// The containers of a directory, each opened when it is needed first. For one thread.
ReadContainer containers_of(Fs& fs, std::string directory);

// A thread file of a sealed session, "<session>/thread_0/index.atf", for reading alone: itself, or
// as the container of a packed session has it. kNotFound: neither is there.
Result<std::unique_ptr<File>> open_thread_file(Fs& fs, const std::string& path);

// Opens a file of a session for reading: one that list_session_files() names, or a thread file that
// the session has packed. kInvalidArgument for a path that no session has ("../x"), kNotFound for
// one that this session has not, kPermission for what is a link or no regular file.
Result<std::unique_ptr<File>> open_session_file(Fs& fs, const SessionPath& session_path,
                                                std::string_view path);

}  // namespace collect::storage
