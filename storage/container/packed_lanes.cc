#include "storage/container/packed_lanes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/core/crc32.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/read/reader.h"
#include "storage/container/capture_layout.h"
#include "storage/container/container_pages.h"
#include "storage/fs/whole_file.h"
#include "storage/model/session_files.h"

namespace collect::storage {
namespace {

constexpr std::string_view kMagic = "collect lanes 1\n";

struct TableHead {      // behind the magic, 16 bytes
  uint64_t bytes = 0;   //  0  of all that follows
  uint32_t crc32c = 0;  //  8  of these
  uint32_t lanes = 0;   // 12
};
static_assert(sizeof(TableHead) == 16);

struct LaneHead {            // 40 bytes
  uint32_t thread = 0;       //  0
  uint32_t lane = 0;         //  4
  uint64_t file_bytes = 0;   //  8
  uint32_t file_crc32c = 0;  // 16
  uint32_t head_bytes = 0;   // 20
  uint32_t tail_bytes = 0;   // 24
  uint32_t pieces = 0;       // 28
  uint32_t container = 0;    // 32
  uint32_t reserved = 0;     // 36
};
static_assert(sizeof(LaneHead) == 40);
static_assert(sizeof(PackedPiece) == 16);

// Of a container, read at once, unless one page alone takes more.
constexpr uint64_t kWindowBytes = uint64_t{8} << 20;
// A page's frames with what is between them.
constexpr uint64_t kMaxPieceSpan = 2 * kMaxPageBytes;
// Further away than this, an index is nearer than what is read now.
constexpr uint64_t kSeekBytes = 2 * rtc::kDefaultMinorBytes;

void put(std::string& out, const auto& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_bytes(std::string& out, Bytes bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool is_before(const PackedLane& lane, uint32_t thread, Lane wanted) {
  return std::pair(lane.thread, lane.lane) < std::pair(thread, wanted);
}

// Pieces of a lane, one after another.
class PieceReader {
 public:
  // Nothing is read from `end` of the file on.
  PieceReader(const PackedLane& lane, uint64_t end, const ReadContainer& read)
      : lane_(lane), end_(end), read_(read) {}

  Status read(uint64_t offset, MutableBytes out) {
    const auto place = std::upper_bound(lane_.places.begin(), lane_.places.end(), offset);
    for (auto at = static_cast<size_t>(place - lane_.places.begin()) - 1; !out.empty(); ++at) {
      const uint64_t skipped = offset - lane_.places[at];
      const size_t bytes = std::min<size_t>(lane_.pieces[at].bytes - skipped, out.size());
      COLLECT_TRY(piece(at, skipped, out.first(bytes)));
      out = out.subspan(bytes);
      offset += bytes;
    }
    return {};
  }

 private:
  // The window has the piece, and the reader is before it.
  Status move_to(size_t at) {
    const PackedPiece& piece = lane_.pieces[at];
    const uint64_t piece_end = piece.offset + piece.span;
    if (window_.empty() || piece.offset < begin_ || piece_end > begin_ + window_.size()) {
      COLLECT_TRY(move_window(at));
    }
    const uint64_t wanted = piece.offset - begin_;
    if (!reader_ || reader_->offset() > wanted) {
      rtc::ReaderOptions options;
      options.verify_crc = false;  // each page has its own
      auto opened = rtc::Reader::open(window_, options);
      if (!opened.ok()) return opened.error();
      reader_ = std::move(*opened);
    }
    if (wanted - reader_->offset() <= kSeekBytes) return {};
    const auto sought = reader_->seek_offset(wanted);
    return sought.ok() ? Status() : Status(sought.error());
  }

  // From the beginning of the piece's Unit, as far as pieces are wanted.
  Status move_window(size_t at) {
    reader_.reset();
    begin_ = lane_.pieces[at].offset & ~(rtc::kDefaultUnitBytes - 1);
    uint64_t end = lane_.pieces[at].offset + lane_.pieces[at].span;
    for (size_t next = at + 1; next < lane_.pieces.size() && lane_.places[next] < end_; ++next) {
      const PackedPiece& piece = lane_.pieces[next];
      if (piece.offset < end || piece.offset + piece.span > begin_ + kWindowBytes) {
        break;
      }
      end = piece.offset + piece.span;
    }
    window_ = {};
    const auto got = read_(lane_.container, begin_, end - begin_, buffer_);
    if (!got.ok()) return got.error();
    if (got->size() != end - begin_) {
      return Error{Code::kTruncated, "the container ends before the page"};
    }
    window_ = *got;
    return {};
  }

  Status piece(size_t at, uint64_t skipped, MutableBytes out) {
    const PackedPiece& piece = lane_.pieces[at];
    const auto damaged = [&](const std::string& why) {
      return Error{Code::kDamaged, fmt::format("{}: at {}: {}", container_name(lane_.container),
                                               piece.offset, why)};
    };
    const Status moved = move_to(at);
    if (!moved.ok()) {
      const bool is_input = moved.code() == Code::kDamaged || moved.code() == Code::kTruncated ||
                            moved.code() == Code::kNotFound;
      return is_input ? damaged(moved.error().message) : moved;
    }
    rtc::Object object;
    while (reader_->next(object)) {
      const uint64_t offset = begin_ + object.offset;
      if (offset >= piece.offset + piece.span) break;
      if (offset != piece.offset) continue;  // a clock's value may be within the page's frames
      const auto page =
          captured_page(object.payload(), unpacked_, skipped == 0 ? out : MutableBytes());
      if (!page.ok()) return damaged(page.error().message);
      if (page->lane != lane_.lane || page->bytes.size() < skipped + out.size()) break;
      const Bytes wanted = page->bytes.subspan(skipped, out.size());
      if (wanted.data() != out.data()) std::ranges::copy(wanted, out.begin());
      return {};
    }
    return damaged("not the page that the table says");
  }

  const PackedLane& lane_;
  const uint64_t end_;
  const ReadContainer& read_;
  Bytes window_;  // of a container
  std::vector<uint8_t> buffer_;
  uint64_t begin_ = 0;  // of the window in the container
  std::optional<rtc::Reader> reader_;
  std::vector<uint8_t> unpacked_;
};

// Reads a block at a time, which is what a page of the container has.
class PackedFile final : public File {
 public:
  PackedFile(std::string path, PackedLane lane, ReadContainer containers)
      : path_(std::move(path)), lane_(std::move(lane)), containers_(std::move(containers)) {}

  const std::string& path() const override { return path_; }
  Result<uint64_t> size() override { return lane_.file_bytes; }
  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    size_t done = 0;
    while (done < out.size() && offset + done < lane_.file_bytes) {
      const uint64_t at = offset + done;
      COLLECT_TRY(move_to(at));
      const Bytes there = Bytes(block_).subspan(at - begin_);
      const size_t bytes = std::min(there.size(), out.size() - done);
      std::copy_n(there.begin(), bytes, out.begin() + static_cast<ptrdiff_t>(done));
      done += bytes;
    }
    return done;
  }
  Status write_at(uint64_t, std::span<const Bytes>) override { return refuse(); }
  Status truncate(uint64_t) override { return refuse(); }
  Status sync() override { return {}; }

 private:
  Status refuse() const { return Error{Code::kPermission, path_ + ": of a packed session"}; }

  Status move_to(uint64_t offset) {
    if (!block_.empty() && offset >= begin_ && offset < begin_ + block_.size()) return {};
    begin_ = offset / kPackedPageBytes * kPackedPageBytes;
    block_.resize(std::min(kPackedPageBytes, lane_.file_bytes - begin_));
    const Status read = read_packed(lane_, begin_, block_, containers_);
    if (!read.ok()) block_.clear();
    return read.ok() ? read
                     : Error{read.code(), fmt::format("{}: {}", path_, read.error().message)};
  }

  const std::string path_;
  const PackedLane lane_;
  const ReadContainer containers_;
  std::vector<uint8_t> block_;
  uint64_t begin_ = 0;  // of the block in the file
};

}  // namespace

bool PackedLane::place_pieces() {
  if (container == 0 || container > kMaxContainerNumber) return false;
  uint64_t at = head.size();
  places.clear();
  places.reserve(pieces.size());
  for (const PackedPiece& piece : pieces) {
    if (piece.bytes == 0 || piece.bytes > kMaxPageBytes) return false;
    if (piece.span == 0 || piece.span > kMaxPieceSpan) return false;
    places.push_back(at);
    at += piece.bytes;
  }
  return at + tail.size() == file_bytes;
}

std::string PackedLanes::encode() const {
  std::string body;
  for (const PackedLane& lane : lanes_) {
    put(body,
        LaneHead{lane.thread, static_cast<uint32_t>(lane.lane), lane.file_bytes, lane.file_crc32c,
                 static_cast<uint32_t>(lane.head.size()), static_cast<uint32_t>(lane.tail.size()),
                 static_cast<uint32_t>(lane.pieces.size()), lane.container, 0});
    put_bytes(body, lane.head);
    put_bytes(body, lane.tail);
    for (const PackedPiece& piece : lane.pieces) put(body, piece);
  }
  std::string table(kMagic);
  put(table, TableHead{body.size(), crc32c(bytes_of(body)), static_cast<uint32_t>(lanes_.size())});
  return table + body;
}

Result<PackedLanes> PackedLanes::decode(Bytes table) {
  ByteReader reader(table);
  const Bytes magic = reader.bytes(kMagic.size());
  TableHead head;
  head.bytes = reader.u64();
  head.crc32c = reader.u32();
  head.lanes = reader.u32();
  if (!reader.ok()) return Error{Code::kTruncated, "shorter than its head"};
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin())) {
    return Error{Code::kDamaged, "at 0: no table of packed lanes"};
  }
  if (head.bytes > reader.remaining()) {
    return Error{Code::kTruncated, "it ends before its last lane"};
  }
  const Bytes body = table.subspan(reader.offset());
  if (head.bytes != body.size() || crc32c(body) != head.crc32c) {
    return Error{Code::kDamaged, "at 0: the table does not have its checksum"};
  }
  const auto damaged = [&reader](const char* what) {
    return Error{Code::kDamaged, fmt::format("at {}: {}", reader.offset(), what)};
  };
  std::vector<PackedLane> lanes;
  for (uint32_t number = 0; number < head.lanes; ++number) {
    const Bytes packed = reader.bytes(sizeof(LaneHead));
    if (!reader.ok()) return damaged("a lane is missing");
    const auto said = load_le<LaneHead>(packed.data());
    if (said.lane > static_cast<uint32_t>(Lane::kDetail) || said.head_bytes > kMaxPackedEndBytes ||
        said.tail_bytes > kMaxPackedEndBytes ||
        said.pieces > reader.remaining() / sizeof(PackedPiece)) {
      return damaged("not a lane");
    }
    PackedLane& lane = lanes.emplace_back();
    lane.thread = said.thread;
    lane.lane = static_cast<Lane>(said.lane);
    lane.container = said.container;
    lane.file_bytes = said.file_bytes;
    lane.file_crc32c = said.file_crc32c;
    for (auto [end, bytes] :
         {std::pair(&lane.head, said.head_bytes), std::pair(&lane.tail, said.tail_bytes)}) {
      const Bytes there = reader.bytes(bytes);
      end->assign(there.begin(), there.end());
    }
    const Bytes pieces = reader.bytes(said.pieces * sizeof(PackedPiece));
    if (!reader.ok()) return damaged("a lane without its pieces");
    lane.pieces.resize(said.pieces);
    for (size_t at = 0; at < lane.pieces.size(); ++at) {
      lane.pieces[at] = load_le<PackedPiece>(pieces.data() + at * sizeof(PackedPiece));
    }
    if (!lane.place_pieces()) return damaged("pieces that are not the file");
    if (number != 0 && !is_before(lanes[number - 1], lane.thread, lane.lane)) {
      return damaged("lanes that are not in their order");
    }
  }
  return PackedLanes(std::move(lanes));
}

const PackedLane* PackedLanes::find(uint32_t thread, Lane lane) const {
  const auto found = std::lower_bound(lanes_.begin(), lanes_.end(), std::pair(thread, lane),
                                      [](const PackedLane& one, const auto& wanted) {
                                        return is_before(one, wanted.first, wanted.second);
                                      });
  if (found == lanes_.end() || found->thread != thread || found->lane != lane) return nullptr;
  return &*found;
}

Status read_packed(const PackedLane& lane, uint64_t offset, MutableBytes out,
                   const ReadContainer& read) {
  COLLECT_CHECK(offset + out.size() <= lane.file_bytes);
  const uint64_t records_end = lane.file_bytes - lane.tail.size();
  const auto take = [&](Bytes from, uint64_t from_offset) {
    if (out.empty() || offset < from_offset || offset >= from_offset + from.size()) return;
    const Bytes some = from.subspan(offset - from_offset);
    const size_t bytes = std::min(some.size(), out.size());
    std::copy_n(some.begin(), bytes, out.begin());
    out = out.subspan(bytes);
    offset += bytes;
  };
  take(lane.head, 0);
  if (!out.empty() && offset < records_end) {
    const size_t bytes = std::min<uint64_t>(out.size(), records_end - offset);
    PieceReader pieces(lane, offset + bytes, read);
    COLLECT_TRY(pieces.read(offset, out.first(bytes)));
    out = out.subspan(bytes);
    offset += bytes;
  }
  take(lane.tail, records_end);
  return {};
}

Result<std::optional<PackedLanes>> read_packed_lanes(Fs& fs, const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kPackedLanesFile);
  const auto table = read_whole_file(fs, path, kMaxPackedLanesBytes);
  if (!table.ok() && table.code() == Code::kNotFound) return std::optional<PackedLanes>();
  if (!table.ok()) return table.error();
  auto lanes = PackedLanes::decode(bytes_of(*table));
  if (!lanes.ok()) return Error{lanes.code(), fmt::format("{}: {}", path, lanes.error().message)};
  return std::optional(std::move(*lanes));
}

ReadContainer containers_of(Fs& fs, std::string directory) {
  auto open = std::make_shared<std::map<uint32_t, std::unique_ptr<File>>>();
  return [&fs, directory = std::move(directory), open](
             uint32_t container, uint64_t offset, size_t bytes,
             std::vector<uint8_t>& buffer) -> Result<Bytes> {
    std::unique_ptr<File>& file = (*open)[container];
    if (!file) {
      auto opened =
          fs.open(fmt::format("{}/{}", directory, container_name(container)), OpenMode::kRead);
      if (!opened.ok()) return opened.error();
      file = std::move(*opened);
    }
    buffer.resize(std::max(buffer.size(), bytes));
    const auto got = file->read_at(offset, MutableBytes(buffer).first(bytes));
    return got.ok() ? Result(Bytes(buffer).first(*got)) : Result<Bytes>(got.error());
  };
}

Result<std::unique_ptr<File>> open_thread_file(Fs& fs, const std::string& path) {
  auto file = fs.open(path, OpenMode::kRead);
  const size_t name = path.rfind('/');
  const size_t thread = name == path.npos || name == 0 ? path.npos : path.rfind('/', name - 1);
  if (file.ok() || file.code() != Code::kNotFound || thread == path.npos) return file;
  const std::string directory = path.substr(0, thread);
  const auto number = parse_thread_directory(path.substr(thread + 1, name - thread - 1));
  const std::string leaf = path.substr(name + 1);
  if (!number || (leaf != kIndexFile && leaf != kDetailFile)) return file;
  const auto packed = read_packed_lanes(fs, directory);
  if (!packed.ok()) return packed.error();
  const PackedLane* const lane =
      *packed ? (*packed)->find(*number, leaf == kIndexFile ? Lane::kIndex : Lane::kDetail)
              : nullptr;
  if (lane == nullptr) return file;
  return std::unique_ptr<File>(
      std::make_unique<PackedFile>(path, *lane, containers_of(fs, directory)));
}

Result<std::unique_ptr<File>> open_session_file(Fs& fs, const SessionPath& session_path,
                                                std::string_view path) {
  if (!is_session_path(path)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("\"{}\" is no file of a session; ListFiles gives the paths, as in "
                             "\"thread_0/index.atf\"",
                             path)};
  }
  auto file = open_thread_file(fs, fmt::format("{}/{}", session_path.directory, path));
  if (file.ok() || file.code() != Code::kNotFound) return file;
  return Error{Code::kNotFound, fmt::format("{} has no file {}", session_path.name, path)};
}

}  // namespace collect::storage
