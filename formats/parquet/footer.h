// FileMetaData, as the footer has it. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/parquet/column_buffer.h"

namespace collect::parquet {

// What is known of a file when all of its row groups are written. Borrowed.
struct FileMetaData {
  std::span<const ColumnBuffer> columns;
  uint64_t row_count = 0;
  size_t row_group_count = 0;
  Bytes row_groups;  // encoded RowGroup structures
  std::span<const std::pair<std::string, std::string>> key_values;
};

// The structure, without its length and the magic number.
std::vector<uint8_t> encode_file_metadata(const FileMetaData& file);

}  // namespace collect::parquet
