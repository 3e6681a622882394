// Writes Apache Parquet (FORMAT.md; github.com/apache/parquet-format 2.11): flat columns, in row
// groups, as it comes. The caller hands over batches of rows, column by column:
//
//   auto writer = Writer::create(sink, {{"time", Type::kUint64, Encoding::kDeltaBinaryPacked},
//                                       {"function", Type::kUint64, Encoding::kRleDictionary}});
//   if (!writer.ok()) return writer.error();
//   COLLECT_TRY((*writer)->append({times, functions}));  // std::vector<uint64_t> each
//   COLLECT_TRY((*writer)->finish());
//
// Memory: the values of one row group, the pages of one column, and some 100 bytes for each column
// chunk that was written, for the footer. Without finish() there is no footer, and no reader
// accepts the file.
//
// One thread at a time. An error of the sink is kept: every later call returns it and writes
// nothing. An error in what the caller hands over (kInvalidArgument, kLimit) changes nothing: the
// batch is left out, and the writer continues.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "formats/parquet/column_buffer.h"
#include "formats/parquet/column_chunk_writer.h"
#include "formats/parquet/layout.h"
#include "formats/parquet/page_writer.h"
#include "formats/parquet/schema.h"

namespace collect::parquet {

struct WriterOptions {
  uint32_t row_group_rows = kRowGroupRows;  // 1 to kMaxRowGroupRows
  uint32_t page_rows = kPageRows;           // at least 1
};

class Writer {
 public:
  // `out` is borrowed until the writer is gone. kInvalidArgument: no columns, a name that is empty,
  // no UTF-8 or there twice, an encoding that the type does not have, or options out of range;
  // kLimit: more than kMaxColumns. Nothing is written yet.
  static Result<std::unique_ptr<Writer>> create(ByteSink& out, std::vector<Column> columns,
                                                WriterOptions options = {});

  // Rows as one ColumnValues for each column, in the order of the schema, all of one length. The
  // values are copied; full row groups are written. kInvalidArgument: another number of columns,
  // other types or lengths, nulls in a required column, or finish() was called; kLimit: a string
  // over kMaxStringBytes; else the sink's error, or kExhausted where zstd gets no memory.
  Status append(std::span<const ColumnValues> batch);
  Status append(std::initializer_list<ColumnValues> batch) {
    return append(std::span(batch.begin(), batch.size()));
  }

  // For the footer, in this order; before finish(). Parts that are no UTF-8 become U+FFFD.
  void add_key_value(std::string_view key, std::string_view value);

  // Writes what is left and the footer. A second call writes nothing and returns the same. kLimit:
  // the footer would be over 2 GiB.
  Status finish();

  const Status& status() const { return pages_.status(); }
  uint64_t rows() const { return rows_written_ + buffers_.front().rows(); }
  // Bytes that the sink has taken.
  uint64_t bytes() const { return pages_.offset(); }

 private:
  Writer(ByteSink& out, std::vector<Column> columns, WriterOptions options);
  Status check(std::span<const ColumnValues> batch) const;
  Status write_row_group();
  Status write_footer();

  const WriterOptions options_;
  PageWriter pages_;
  ColumnChunkWriter chunks_{pages_, options_.page_rows};
  std::vector<ColumnBuffer> buffers_;  // one for each column, all with the same number of rows
  std::vector<uint8_t> row_groups_;    // the RowGroup structures of the footer, encoded
  size_t row_group_count_ = 0;
  uint64_t rows_written_ = 0;
  std::vector<std::pair<std::string, std::string>> key_values_;
  bool is_finished_ = false;
};

}  // namespace collect::parquet
