#include "formats/parquet/thrift_writer.h"

#include "formats/parquet/varint.h"

namespace collect::parquet {

namespace {

constexpr size_t kMaxShortList = 14;
constexpr int kMaxShortStep = 15;

}  // namespace

void ThriftWriter::varint(uint64_t value) {
  append_varint(value, out_);
}
void ThriftWriter::zigzag(int64_t value) {
  append_zigzag(value, out_);
}

void ThriftWriter::field(int16_t number, ThriftType type) {
  const int step = number - last_fields_.back();
  if (step > 0 && step <= kMaxShortStep) {
    out_.push_back(static_cast<uint8_t>(step << 4 | static_cast<int>(type)));
  } else {
    out_.push_back(static_cast<uint8_t>(type));
    zigzag(number);
  }
  last_fields_.back() = number;
}

void ThriftWriter::boolean(int16_t number, bool value) {
  field(number, value ? ThriftType::kTrue : ThriftType::kFalse);
}

void ThriftWriter::i8(int16_t number, int8_t value) {
  field(number, ThriftType::kI8);
  out_.push_back(static_cast<uint8_t>(value));
}

void ThriftWriter::i32(int16_t number, int32_t value) {
  field(number, ThriftType::kI32);
  zigzag(value);
}

void ThriftWriter::i64(int16_t number, int64_t value) {
  field(number, ThriftType::kI64);
  zigzag(value);
}

void ThriftWriter::binary(int16_t number, Bytes value) {
  field(number, ThriftType::kBinary);
  varint(value.size());
  out_.insert(out_.end(), value.begin(), value.end());
}

void ThriftWriter::text(int16_t number, std::string_view value) {
  field(number, ThriftType::kBinary);
  element_text(value);
}

void ThriftWriter::begin_struct(int16_t number) {
  field(number, ThriftType::kStruct);
  begin_struct();
}

void ThriftWriter::begin_list(int16_t number, ThriftType element, size_t count) {
  field(number, ThriftType::kList);
  if (count <= kMaxShortList) {
    out_.push_back(static_cast<uint8_t>(count << 4 | static_cast<size_t>(element)));
    return;
  }
  out_.push_back(static_cast<uint8_t>(0xF0 | static_cast<int>(element)));
  varint(count);
}

void ThriftWriter::begin_struct() {
  last_fields_.push_back(0);
}
void ThriftWriter::element_i32(int32_t value) {
  zigzag(value);
}

void ThriftWriter::element_text(std::string_view value) {
  varint(value.size());
  out_.insert(out_.end(), value.begin(), value.end());
}

void ThriftWriter::elements(Bytes encoded) {
  out_.insert(out_.end(), encoded.begin(), encoded.end());
}

void ThriftWriter::end_struct() {
  out_.push_back(0);
  last_fields_.pop_back();
}

}  // namespace collect::parquet
