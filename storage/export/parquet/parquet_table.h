// A file of Parquet that is filled row by row: the rows of a batch are kept by column, and handed
// to the writer together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/parquet/writer.h"
#include "storage/convert/convert_log.h"
#include "storage/fs/output_file.h"

namespace collect::exports {

class ParquetTable {
 public:
  static constexpr size_t kBatchRows = 16'384;

  static Result<ParquetTable> create(const std::string& path, std::vector<parquet::Column> columns);

  // One value of each column, in their order; then end_row(). Texts are copied.
  void number(uint64_t value);
  void text(std::string_view value);
  void null();
  Status end_row();

  Status finish();  // writes the footer
  Status commit(convert::ConvertLog& log);
  uint64_t rows() const { return writer_->rows() + rows_; }

 private:
  struct ColumnRows {
    parquet::Type type{};
    bool is_optional = false;
    std::vector<uint32_t> small;
    std::vector<uint64_t> large;
    std::string bytes;
    std::vector<size_t> ends;
    std::vector<uint8_t> present;
  };

  ParquetTable(std::unique_ptr<storage::OutputFile> file, std::unique_ptr<parquet::Writer> writer,
               const std::vector<parquet::Column>& columns);
  Status flush();

  std::unique_ptr<storage::OutputFile> file_;
  std::unique_ptr<parquet::Writer> writer_;  // into file_
  std::vector<ColumnRows> columns_;
  size_t next_ = 0;  // column of the row
  size_t rows_ = 0;  // of the batch
};

}  // namespace collect::exports
