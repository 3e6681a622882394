#include "storage/container/page_packing.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

#include "formats/atf/layout.h"
#include "proto/wire/page_codec.h"

namespace collect::storage {
namespace {

struct BlockHeader {      // 12 bytes
  uint32_t record_count;  //  0
  uint32_t raw_bytes;     //  4
  uint32_t sent_bytes;    //  8
};
static_assert(sizeof(BlockHeader) == 12);

// As many whole records as an encoder takes at once, or one that is larger than that. Both versions
// begin a detail record with its length.
BlockHeader next_block(Lane lane, uint32_t records_left, Bytes left) {
  if (lane == Lane::kIndex) {
    constexpr size_t kMost = wire::kMaxEncodedPage / atf::kEventBytes;
    const auto count = static_cast<uint32_t>(std::min<size_t>(records_left, kMost));
    return {count, static_cast<uint32_t>(count * atf::kEventBytes), 0};
  }
  uint32_t count = 0;
  size_t bytes = 0;
  while (count < records_left && left.size() - bytes >= sizeof(uint32_t)) {
    const auto length = load_le<uint32_t>(left.data() + bytes);
    if (length == 0 || length > left.size() - bytes) break;
    if (count != 0 && bytes + length > wire::kMaxEncodedPage) break;
    bytes += length;
    ++count;
  }
  return {count, static_cast<uint32_t>(bytes), 0};
}

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

struct Packer {
  wire::ColumnEncoder columns;
  wire::TupleEncoder tuples;
  std::vector<uint8_t> packed;
  std::unique_ptr<ZSTD_CCtx, Free> compressor;
  std::vector<uint8_t> compressed;
};

// Of a container of 165 MB (json_iso_codes), zstd -1 leaves 93 MB, -3 81 MB, -9 68 MB.
constexpr int kZstdLevel = 3;

// The blocks as one frame, where that is smaller.
PackedPage compress(Packer& packer, const PackedPage& page) {
  if (page.bytes.empty()) return page;
  if (!packer.compressor) packer.compressor.reset(ZSTD_createCCtx());
  packer.compressed.resize(ZSTD_compressBound(page.bytes.size()));
  const size_t bytes =
      ZSTD_compressCCtx(packer.compressor.get(), packer.compressed.data(), packer.compressed.size(),
                        page.bytes.data(), page.bytes.size(), kZstdLevel);
  if (ZSTD_isError(bytes) || bytes >= page.bytes.size()) return page;
  const auto codec = static_cast<uint8_t>(static_cast<uint8_t>(page.codec) | kCompressedBlocks);
  return {Bytes(packer.compressed).first(bytes), static_cast<Codec>(codec)};
}

// What one block becomes; 0: nothing that is smaller.
size_t encode(Packer& packer, Codec codec, Lane lane, uint32_t record_count, Bytes records,
              MutableBytes out) {
  return codec == Codec::kTuples ? packer.tuples.encode(record_count, records, out)
                                 : packer.columns.encode(lane, record_count, records, out);
}

// Empty when that is not smaller, or when a page that was stored is not whole records: it stays as
// it is.
Bytes pack_by(Packer& packer, Codec codec, const Page& page) {
  std::vector<uint8_t>& packed = packer.packed;
  size_t at = 0;
  uint32_t records_left = page.record_count;
  for (Bytes left = page.bytes; !left.empty();) {
    BlockHeader header = next_block(page.lane, records_left, left);
    if (header.record_count == 0 || header.raw_bytes > left.size()) return {};
    const Bytes records = left.first(header.raw_bytes);
    if (packed.size() - at <= sizeof header) return {};
    const MutableBytes out = MutableBytes(packed).subspan(at + sizeof header);
    size_t sent = encode(packer, codec, page.lane, header.record_count, records, out);
    if (sent == 0) {
      if (codec == Codec::kTuples || records.size() > out.size()) return {};
      std::copy(records.begin(), records.end(), out.begin());
      sent = records.size();
    }
    header.sent_bytes = static_cast<uint32_t>(sent);
    store_le(packed.data() + at, header);
    at += sizeof header + sent;
    records_left -= header.record_count;
    left = left.subspan(header.raw_bytes);
  }
  if (records_left != 0) return {};
  return at < page.bytes.size() ? Bytes(packed).first(at) : Bytes();
}

// What came encoded, as one block.
Bytes pack_encoded(Packer& packer, const Page& page) {
  const BlockHeader header{page.record_count, static_cast<uint32_t>(page.bytes.size()),
                           static_cast<uint32_t>(page.encoded.size())};
  const size_t size = sizeof header + page.encoded.size();
  if (size >= page.bytes.size()) return {};
  store_le(packer.packed.data(), header);
  std::copy(page.encoded.begin(), page.encoded.end(), packer.packed.begin() + sizeof header);
  return Bytes(packer.packed).first(size);
}

PackedPage pack_quickly(Packer& packer, const Page& page) {
  if (packer.packed.size() < page.bytes.size()) packer.packed.resize(page.bytes.size());
  if (!page.encoded.empty()) return {pack_encoded(packer, page), page.encoded_by};
  if (page.lane == Lane::kIndex) {
    const Bytes tuples = pack_by(packer, Codec::kTuples, page);
    if (!tuples.empty()) return {tuples, Codec::kTuples};
  }
  return {pack_by(packer, Codec::kColumns, page), Codec::kColumns};
}

}  // namespace

PackedPage pack_page(const Page& page, Packing packing) {
  thread_local const auto scratch = std::make_unique<Packer>();
  Packer& packer = *scratch;
  const PackedPage packed = pack_quickly(packer, page);
  return packing == Packing::kQuick ? packed : compress(packer, packed);
}

std::optional<Bytes> decompress_blocks(Bytes sent, size_t most) {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  thread_local std::vector<uint8_t> blocks;
  const unsigned long long bytes = ZSTD_getFrameContentSize(sent.data(), sent.size());
  if (bytes > most) return std::nullopt;  // so are those that say that it is unknown, or no frame
  blocks.resize(std::max<size_t>(blocks.size(), bytes));
  const size_t got =
      ZSTD_decompressDCtx(context.get(), blocks.data(), bytes, sent.data(), sent.size());
  if (ZSTD_isError(got) || got != bytes) return std::nullopt;
  return Bytes(blocks).first(bytes);
}

bool unpack_page(const PageHeader& header, Bytes packed, std::vector<uint8_t>& records) {
  if (header.raw_bytes > kMaxPageBytes) return false;
  records.resize(header.raw_bytes);
  return unpack_page(header, packed, MutableBytes(records));
}

bool unpack_page(const PageHeader& header, Bytes packed, MutableBytes records) {
  thread_local std::vector<uint8_t> scratch;
  MutableBytes left = records;
  uint32_t records_left = header.record_count;
  while (packed.size() >= sizeof(BlockHeader)) {
    const auto block = load_le<BlockHeader>(packed.data());
    packed = packed.subspan(sizeof block);
    if (block.record_count > records_left || block.raw_bytes > left.size() ||
        block.sent_bytes > packed.size() || block.sent_bytes > block.raw_bytes) {
      return false;
    }
    const Bytes sent = packed.first(block.sent_bytes);
    const MutableBytes out = left.first(block.raw_bytes);
    if (block.sent_bytes == block.raw_bytes) {
      std::copy(sent.begin(), sent.end(), out.begin());
    } else {
      scratch.resize(std::max<size_t>(scratch.size(), block.raw_bytes));
      PageHeader part = header;
      part.record_count = block.record_count;
      if (wire::decode_page(part, sent, scratch, out) != wire::PageCodecError::kNone) {
        return false;
      }
    }
    packed = packed.subspan(block.sent_bytes);
    left = left.subspan(block.raw_bytes);
    records_left -= block.record_count;
  }
  return packed.empty() && left.empty() && records_left == 0;
}

}  // namespace collect::storage
