// Thrift's compact protocol (thrift-compact-protocol.md), as far as parquet.thrift needs it.
// Appends to a vector; not thread-safe. Every structure is begun and ended by its owner:
//
//   thrift.begin_struct();              // the outermost one
//   thrift.i32(1, 2);
//   thrift.begin_struct(5);             // a field of it
//   thrift.end_struct();
//   thrift.begin_list(6, ThriftType::kStruct, 1);
//   thrift.begin_struct();              // an element
//   thrift.end_struct();
//   thrift.end_struct();
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::parquet {

enum class ThriftType : uint8_t {
  kTrue = 1,
  kFalse = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kBinary = 8,
  kList = 9,
  kStruct = 12,
};

class ThriftWriter {
 public:
  explicit ThriftWriter(std::vector<uint8_t>& out) : out_(out) {}

  // Fields of the innermost structure, each with a greater number than the one before.
  void boolean(int16_t field, bool value);
  void i8(int16_t field, int8_t value);
  void i32(int16_t field, int32_t value);
  void i64(int16_t field, int64_t value);
  void binary(int16_t field, Bytes value);
  void text(int16_t field, std::string_view value);
  void begin_struct(int16_t field);
  // Exactly `count` elements follow.
  void begin_list(int16_t field, ThriftType element, size_t count);

  // Elements of a list, and the outermost structure.
  void begin_struct();
  void element_i32(int32_t value);
  void element_text(std::string_view value);
  // Whole elements that another writer has encoded.
  void elements(Bytes encoded);

  void end_struct();

 private:
  void field(int16_t number, ThriftType type);
  void varint(uint64_t value);
  void zigzag(int64_t value);

  std::vector<uint8_t>& out_;
  std::vector<int16_t> last_fields_;  // of each open structure: the number that was written last
};

}  // namespace collect::parquet
