#include "formats/parquet/column_chunk_writer.h"

#include <algorithm>
#include <bit>

#include "formats/core/bytes.h"
#include "formats/parquet/delta_encoder.h"
#include "formats/parquet/rle_encoder.h"
#include "formats/parquet/statistics.h"

namespace collect::parquet {

namespace {

// Where a chunk is in the file, and what it would take without compression.
struct ChunkPlace {
  uint64_t begin = 0;
  uint64_t data_begin = 0;
  uint64_t end = 0;
  uint64_t uncompressed_bytes = 0;
};

void write_metadata(const ColumnBuffer& buffer, Encoding encoding, const ChunkPlace& place,
                    ThriftWriter& thrift) {
  const Column& column = buffer.column();
  const bool has_dictionary = encoding == Encoding::kRleDictionary;
  // RLE, of the levels, is listed always: readers expect it.
  std::vector<Encoding> encodings = {Encoding::kRle, encoding};
  if (has_dictionary) encodings.push_back(Encoding::kPlain);  // its page
  thrift.begin_struct();
  thrift.i64(ColumnChunkField::kFileOffset, 0);
  thrift.begin_struct(ColumnChunkField::kMetaData);
  thrift.i32(ColumnMetaDataField::kType, static_cast<int32_t>(physical_type(column.type)));
  thrift.begin_list(ColumnMetaDataField::kEncodings, ThriftType::kI32, encodings.size());
  for (const Encoding used : encodings) thrift.element_i32(static_cast<int32_t>(used));
  thrift.begin_list(ColumnMetaDataField::kPathInSchema, ThriftType::kBinary, 1);
  thrift.element_text(column.name);
  thrift.i32(ColumnMetaDataField::kCodec, kCodecZstd);
  thrift.i64(ColumnMetaDataField::kNumValues, static_cast<int64_t>(buffer.rows()));
  thrift.i64(ColumnMetaDataField::kTotalUncompressedSize,
             static_cast<int64_t>(place.uncompressed_bytes));
  thrift.i64(ColumnMetaDataField::kTotalCompressedSize,
             static_cast<int64_t>(place.end - place.begin));
  thrift.i64(ColumnMetaDataField::kDataPageOffset, static_cast<int64_t>(place.data_begin));
  if (has_dictionary) {
    thrift.i64(ColumnMetaDataField::kDictionaryPageOffset, static_cast<int64_t>(place.begin));
  }
  write_statistics(statistics_of(buffer), thrift);
  thrift.end_struct();
  thrift.end_struct();
}

}  // namespace

Encoding ColumnChunkWriter::choose_encoding(const ColumnBuffer& buffer) {
  if (buffer.value_count() == 0) return Encoding::kPlain;
  const Column& column = buffer.column();
  if (column.encoding != Encoding::kRleDictionary) return column.encoding;
  if (dictionary_.build(buffer)) return Encoding::kRleDictionary;
  return is_integer(column.type) ? Encoding::kDeltaBinaryPacked : Encoding::kPlain;
}

// PLAIN strings end a page before its row count does, where they are long.
ColumnChunkWriter::Part ColumnChunkWriter::part_from(const ColumnBuffer& buffer, Encoding encoding,
                                                     size_t row, size_t value) const {
  Part part{row, std::min(page_rows_, buffer.rows() - row), value, 0};
  const bool is_optional = buffer.column().is_optional;
  const bool counts_text = encoding == Encoding::kPlain && buffer.column().type == Type::kString;
  if (!is_optional && !counts_text) {
    part.value_count = part.row_count;
    return part;
  }
  size_t text_bytes = 0;
  for (size_t i = 0; i < part.row_count; ++i) {
    if (is_optional && buffer.present()[row + i] == 0) continue;
    if (counts_text) {
      if (text_bytes >= kPageTextBytes) {
        part.row_count = i;
        break;
      }
      text_bytes += buffer.text(value + part.value_count).size();
    }
    ++part.value_count;
  }
  return part;
}

void ColumnChunkWriter::append_plain(const ColumnBuffer& buffer, size_t value) {
  const PhysicalType type = physical_type(buffer.column().type);
  const size_t at = values_.size();
  if (type == PhysicalType::kByteArray) {
    const std::string_view text = buffer.text(value);
    values_.resize(at + sizeof(uint32_t));
    store_le(values_.data() + at, static_cast<uint32_t>(text.size()));
    values_.insert(values_.end(), text.begin(), text.end());
  } else if (type == PhysicalType::kInt32) {
    values_.resize(at + sizeof(uint32_t));
    store_le(values_.data() + at, static_cast<uint32_t>(buffer.words()[value]));
  } else {
    values_.resize(at + sizeof(uint64_t));
    store_le(values_.data() + at, buffer.words()[value]);
  }
}

Status ColumnChunkWriter::write_dictionary(const ColumnBuffer& buffer) {
  values_.clear();
  for (const uint32_t value : dictionary_.positions()) append_plain(buffer, value);
  return pages_.write_dictionary_page(values_, dictionary_.positions().size());
}

Status ColumnChunkWriter::write_page(const ColumnBuffer& buffer, Encoding encoding,
                                     const Part& part) {
  definition_levels_.clear();
  if (buffer.column().is_optional) {
    append_rle_hybrid(buffer.present().subspan(part.row, part.row_count), 1, definition_levels_);
  }
  values_.clear();
  if (encoding == Encoding::kRleDictionary) {
    const auto width = static_cast<uint32_t>(std::bit_width(dictionary_.positions().size() - 1));
    values_.push_back(static_cast<uint8_t>(width));
    append_rle_hybrid(dictionary_.indices().subspan(part.value, part.value_count), width, values_);
  } else if (encoding == Encoding::kDeltaBinaryPacked) {
    append_delta_binary_packed(buffer.words().subspan(part.value, part.value_count),
                               physical_type(buffer.column().type), values_);
  } else {
    for (size_t i = 0; i < part.value_count; ++i) append_plain(buffer, part.value + i);
  }
  return pages_.write_data_page(
      {part.row_count, part.row_count - part.value_count, encoding, definition_levels_, values_});
}

Status ColumnChunkWriter::write(const ColumnBuffer& buffer, ThriftWriter& metadata) {
  const Encoding encoding = choose_encoding(buffer);
  ChunkPlace place;
  place.begin = pages_.offset();
  const uint64_t uncompressed_begin = pages_.uncompressed_offset();
  if (encoding == Encoding::kRleDictionary) COLLECT_TRY(write_dictionary(buffer));
  place.data_begin = pages_.offset();
  Part part;
  while (part.row + part.row_count < buffer.rows()) {
    part = part_from(buffer, encoding, part.row + part.row_count, part.value + part.value_count);
    COLLECT_TRY(write_page(buffer, encoding, part));
  }
  place.end = pages_.offset();
  place.uncompressed_bytes = pages_.uncompressed_offset() - uncompressed_begin;
  write_metadata(buffer, encoding, place, metadata);
  return {};
}

}  // namespace collect::parquet
