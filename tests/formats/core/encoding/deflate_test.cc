// What ISA-L packs, zlib unpacks.
#include "formats/core/encoding/deflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

namespace collect {
namespace {

using Raw = std::vector<uint8_t>;

// Half of it repeats.
Raw text_of(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  Raw text(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = i % 64 < 32 ? static_cast<uint8_t>(i) : static_cast<uint8_t>(random());
  }
  return text;
}

// By zlib; `window` 15: a zlib stream, 31: gzip. Nothing may follow the stream.
Raw inflated(const Raw& packed, int window) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, window), Z_OK);
  Raw out(64 << 20);
  stream.next_in = const_cast<uint8_t*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(ZlibPieces, EachPieceIsAStreamOfItsOwn) {
  ZlibPieces pieces;
  for (const size_t bytes : {0, 1, 1000, 65536, 300'000, 3'000'000}) {
    const Raw text = text_of(bytes, static_cast<uint32_t>(bytes));
    Raw packed;
    pieces.append(packed, text);
    EXPECT_EQ(inflated(packed, 15), text) << bytes;
  }
}

TEST(GzipSink, JoinsPartsIntoOneFile) {
  const Raw text = text_of(2'000'000, 7);
  VectorSink file;
  GzipSink gzip(file);
  size_t at = 0;
  for (size_t part = 1; at < text.size(); part = part * 3 + 1) {
    const size_t size = std::min(part, text.size() - at);
    ASSERT_TRUE(gzip.write(Bytes(text).subspan(at, size)).ok());
    at += size;
  }
  ASSERT_TRUE(gzip.finish().ok());
  EXPECT_LT(file.bytes().size(), text.size() * 3 / 4);
  EXPECT_EQ(inflated(file.bytes(), 31), text);
}

TEST(GzipSink, EmptyInputMakesAValidFile) {
  VectorSink file;
  GzipSink gzip(file);
  ASSERT_TRUE(gzip.finish().ok());
  EXPECT_EQ(inflated(file.bytes(), 31), Raw());
}

}  // namespace
}  // namespace collect
