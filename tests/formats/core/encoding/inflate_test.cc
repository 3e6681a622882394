#include "formats/core/encoding/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace collect {
namespace {

using Raw = std::vector<uint8_t>;

// By zlib; `window` 15: a zlib stream, 31: gzip.
Raw packed(const Raw& text, int window) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Raw out(deflateBound(&stream, text.size()) + 64);
  stream.next_in = const_cast<uint8_t*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Raw text_of(size_t bytes) {
  Raw text(bytes);
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<uint8_t>(i * i >> 8);
  return text;
}

TEST(Inflate, UnpacksWhatZlibPacks) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{300'000}, size_t{1} << 20}) {
    for (const int window : {15, 31}) {
      const Raw text = text_of(bytes);
      const auto unpacked = inflate_piece(packed(text, window), bytes);
      ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
      EXPECT_EQ(*unpacked, text);
    }
  }
}

TEST(Inflate, HasALimit) {
  for (const size_t bytes : {size_t{1}, size_t{300'000}}) {
    const auto unpacked = inflate_piece(packed(text_of(bytes), 15), bytes - 1);
    ASSERT_FALSE(unpacked.ok());
    EXPECT_EQ(unpacked.code(), Code::kLimit);
  }
}

TEST(Inflate, RefusesPrefixesAndGarbage) {
  const Raw whole = packed(text_of(500), 15);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(inflate_piece(Bytes(whole).first(size), 1 << 20).ok()) << size;
  }
  Raw flipped = whole;
  for (size_t at = 0; at < whole.size(); ++at) {
    flipped[at] ^= 0x10;
    (void)inflate_piece(flipped, 1 << 20);
    flipped[at] = whole[at];
  }
  EXPECT_FALSE(inflate_piece(Raw{'h', 'e', 'l', 'l', 'o'}, 100).ok());
}

}  // namespace
}  // namespace collect
