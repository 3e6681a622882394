#include "daemon/upload/object_source.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "daemon/upload/object_sink.h"
#include "formats/core/crc32.h"
#include "tests/storage/session_fixture.h"

namespace collect::upload {
namespace {

class ObjectSourceTest : public ::testing::Test {
 protected:
  std::string file_of(const std::vector<uint8_t>& bytes) {
    const std::string path = folder_.path() + "/index.atf";
    storage::test::write_file(path, bytes);
    return path;
  }
  // Read in pieces of this size.
  std::vector<uint8_t> object_of(const std::string& path, bool compressed, size_t piece) {
    auto source = ObjectSource::open(fs_, path, compressed);
    EXPECT_OK(source);
    std::vector<uint8_t> all;
    std::vector<uint8_t> block(piece);
    while (true) {
      const auto got = (*source)->read(block);
      EXPECT_OK(got);
      all.insert(all.end(), block.begin(), block.begin() + static_cast<ptrdiff_t>(*got));
      if (*got < block.size()) break;
    }
    const auto bytes = storage::test::read_file(path);
    EXPECT_EQ((*source)->file_bytes(), bytes.size());
    EXPECT_EQ((*source)->file_crc32c(), crc32c(bytes));
    return all;
  }
  static std::vector<uint8_t> mixed(size_t bytes) {
    std::mt19937 random(7);
    std::vector<uint8_t> out(bytes);
    for (size_t i = 0; i < bytes; ++i)
      out[i] = static_cast<uint8_t>(i % 3 == 0 ? random() : i / 100);
    return out;
  }

  storage::PosixFs fs_;
  storage::test::TemporaryDirectory folder_;
};

TEST_F(ObjectSourceTest, ReturnsTheSameBytesForAnyReadSize) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, kReadBytes - 1, kReadBytes, kReadBytes + 1, 3 * kReadBytes + 17}) {
    const auto content = mixed(bytes);
    const std::string path = file_of(content);
    EXPECT_EQ(object_of(path, false, 1000), content) << bytes;
    const auto packed = object_of(path, true, 10 << 20);
    EXPECT_EQ(object_of(path, true, 999), packed) << bytes;
    std::vector<uint8_t> unpacked(bytes + 1);
    EXPECT_EQ(ZSTD_decompress(unpacked.data(), unpacked.size(), packed.data(), packed.size()),
              bytes);
    unpacked.resize(bytes);
    EXPECT_EQ(unpacked, content);
  }
}

TEST_F(ObjectSourceTest, FileThatIsNotThere) {
  EXPECT_EQ(ObjectSource::open(fs_, folder_.path() + "/none", true).code(), Code::kNotFound);
}

class ObjectSinkTest : public ObjectSourceTest {
 protected:
  // Of `object` in pieces of this size.
  Status sink(const CommittedFile& wanted, const std::vector<uint8_t>& object, size_t piece) {
    const std::string path = folder_.path() + "/back" + std::to_string(++files_);
    auto file = storage::UntrustedFile::open(fs_, path, wanted.bytes, space_, false);
    EXPECT_OK(file);
    ObjectSink sink(wanted, *file);
    for (size_t at = 0; at < object.size(); at += piece) {
      COLLECT_TRY(sink.write(Bytes(object).subspan(at, std::min(piece, object.size() - at))));
    }
    COLLECT_TRY(sink.finish());
    COLLECT_TRY(file->finish(false));
    back_ = storage::test::read_file(path);
    return {};
  }
  static CommittedFile wanted_of(const std::vector<uint8_t>& content,
                                 const std::vector<uint8_t>& object, bool compressed) {
    return {"thread_0/index.atf", "thread=0/index.atf.zst", compressed,
            content.size(),       crc32c(content),          object.size(),
            crc32c(object)};
  }

  std::vector<uint8_t> back_;
  storage::UntrustedSpace space_{fs_, folder_.path()};
  int files_ = 0;
};

TEST_F(ObjectSinkTest, RestoresSentContent) {
  for (const size_t bytes : {size_t{0}, size_t{1}, 2 * kReadBytes + 5}) {
    const auto content = mixed(bytes);
    const auto packed = object_of(file_of(content), true, 1 << 20);
    for (const size_t piece : {size_t{1000}, packed.size() + 1}) {
      EXPECT_OK(sink(wanted_of(content, packed, true), packed, piece));
      EXPECT_EQ(back_, content);
      EXPECT_OK(sink(wanted_of(content, content, false), content, piece));
      EXPECT_EQ(back_, content);
    }
  }
}

TEST_F(ObjectSinkTest, EveryPrefixAndEveryChangedByteIsDamage) {
  const auto content = mixed(300);
  const auto packed = object_of(file_of(content), true, 1 << 20);
  for (const bool compressed : {true, false}) {
    const auto& object = compressed ? packed : content;
    const CommittedFile wanted = wanted_of(content, object, compressed);
    for (size_t size = 0; size < object.size(); ++size) {
      const std::vector<uint8_t> cut(object.begin(), object.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(sink(wanted, cut, 100).code(), Code::kDamaged) << size;
    }
    for (size_t at = 0; at < object.size(); ++at) {
      auto changed = object;
      changed[at] ^= 0x10;
      EXPECT_EQ(sink(wanted, changed, 100).code(), Code::kDamaged) << at;
    }
    auto longer = object;
    longer.push_back(0);
    EXPECT_EQ(sink(wanted, longer, 100).code(), Code::kDamaged);
  }
}

// Few bytes that become many: no more than COMMIT names are written.
TEST_F(ObjectSinkTest, BombIsCutOff) {
  const std::vector<uint8_t> zeros(20 << 20);
  const auto packed = object_of(file_of(zeros), true, 1 << 20);
  EXPECT_LT(packed.size(), zeros.size() / 1000);
  CommittedFile wanted = wanted_of(zeros, packed, true);
  wanted.bytes = 1000;
  EXPECT_EQ(sink(wanted, packed, packed.size()).code(), Code::kDamaged);
  EXPECT_LE(storage::test::read_file(folder_.path() + "/back1.part").size(), 1000u);
}

}  // namespace
}  // namespace collect::upload
