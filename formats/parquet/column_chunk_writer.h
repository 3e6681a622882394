// Encodes what a ColumnBuffer holds as a column chunk: its dictionary page and data pages to the
// file, its ColumnChunk to the row group's metadata. Keeps its work space; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/parquet/column_buffer.h"
#include "formats/parquet/dictionary.h"
#include "formats/parquet/page_writer.h"
#include "formats/parquet/thrift_writer.h"

namespace collect::parquet {

class ColumnChunkWriter {
 public:
  // Both are borrowed. `page_rows`: of each data page, at most.
  ColumnChunkWriter(PageWriter& pages, size_t page_rows) : pages_(pages), page_rows_(page_rows) {}

  // `buffer` has rows. `metadata` is within the list of column chunks. Errors are the PageWriter's.
  Status write(const ColumnBuffer& buffer, ThriftWriter& metadata);

 private:
  // A range of the buffer: rows, and the values of those that are not null.
  struct Part {
    size_t row = 0;
    size_t row_count = 0;
    size_t value = 0;
    size_t value_count = 0;
  };

  // The encoding of the chunk; builds dictionary_ where that is kRleDictionary.
  Encoding choose_encoding(const ColumnBuffer& buffer);
  Part part_from(const ColumnBuffer& buffer, Encoding encoding, size_t row, size_t value) const;
  void append_plain(const ColumnBuffer& buffer, size_t value);
  Status write_dictionary(const ColumnBuffer& buffer);
  Status write_page(const ColumnBuffer& buffer, Encoding encoding, const Part& part);

  PageWriter& pages_;
  size_t page_rows_;
  Dictionary dictionary_;
  std::vector<uint8_t> definition_levels_;
  std::vector<uint8_t> values_;
};

}  // namespace collect::parquet
