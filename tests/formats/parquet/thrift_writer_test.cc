// Bytes by hand, from thrift-compact-protocol.md.
#include "formats/parquet/thrift_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace collect::parquet {
namespace {

using Raw = std::vector<uint8_t>;

TEST(ParquetThriftWriter, FieldsHaveTheirDistanceAndType) {
  Raw out;
  ThriftWriter thrift(out);
  thrift.begin_struct();
  thrift.boolean(1, true);
  thrift.boolean(2, false);
  thrift.i8(4, -1);
  thrift.i32(19, 300);   // 15 further: the longest short form
  thrift.i64(35, -300);  // 16 further: the long one
  thrift.text(36, "ab");
  const uint8_t raw[] = {0xFF};
  thrift.binary(37, raw);
  thrift.end_struct();
  EXPECT_EQ(out, (Raw{0x11, 0x12,              //
                      0x23, 0xFF,              //
                      0xF5, 0xD8, 0x04,        // zigzag 600
                      0x06, 0x46, 0xD7, 0x04,  // number 35 as zigzag 70, value zigzag 599
                      0x18, 2, 'a', 'b',       //
                      0x18, 1, 0xFF, 0x00}));
}

TEST(ParquetThriftWriter, NumbersMayBeExtreme) {
  Raw out;
  ThriftWriter thrift(out);
  thrift.begin_struct();
  thrift.i32(1, std::numeric_limits<int32_t>::min());
  thrift.i64(2, std::numeric_limits<int64_t>::max());
  thrift.i64(3, std::numeric_limits<int64_t>::min());
  thrift.end_struct();
  EXPECT_EQ(out, (Raw{0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F,                                //
                      0x16, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01,  //
                      0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x00}));
}

TEST(ParquetThriftWriter, StructureCountsItsOwnFields) {
  Raw out;
  ThriftWriter thrift(out);
  thrift.begin_struct();
  thrift.i32(3, 1);
  thrift.begin_struct(5);
  thrift.i32(1, 2);
  thrift.end_struct();
  thrift.i32(6, 3);
  thrift.end_struct();
  EXPECT_EQ(out, (Raw{0x35, 2, 0x2C, 0x15, 4, 0x00, 0x15, 6, 0x00}));
}

TEST(ParquetThriftWriter, ListsUpToFourteenHaveShortHeaders) {
  for (const size_t count : {size_t{0}, size_t{14}, size_t{15}, size_t{200}}) {
    Raw out;
    ThriftWriter thrift(out);
    thrift.begin_struct();
    thrift.begin_list(2, ThriftType::kI32, count);
    for (size_t i = 0; i < count; ++i) thrift.element_i32(-1);
    thrift.end_struct();
    Raw wanted = {0x29};
    if (count < 15) wanted.push_back(static_cast<uint8_t>(count << 4 | 5));
    if (count == 15) wanted.insert(wanted.end(), {0xF5, 15});
    if (count == 200) wanted.insert(wanted.end(), {0xF5, 0xC8, 0x01});
    wanted.insert(wanted.end(), count, 1);
    wanted.push_back(0);
    EXPECT_EQ(out, wanted) << count;
  }
}

TEST(ParquetThriftWriter, ElementsAreStructuresAndTexts) {
  Raw out;
  ThriftWriter thrift(out);
  thrift.begin_struct();
  thrift.begin_list(1, ThriftType::kStruct, 2);
  thrift.begin_struct();
  thrift.i32(1, 7);
  thrift.end_struct();
  thrift.elements(Raw{0x15, 16, 0x00});
  thrift.begin_list(2, ThriftType::kBinary, 1);
  thrift.element_text("x");
  thrift.end_struct();
  EXPECT_EQ(out, (Raw{0x19, 0x2C, 0x15, 14, 0x00, 0x15, 16, 0x00, 0x19, 0x18, 1, 'x', 0x00}));
}

}  // namespace
}  // namespace collect::parquet
