#include "storage/export/parquet/parquet_table.h"

namespace collect::exports {

ParquetTable::ParquetTable(std::unique_ptr<storage::OutputFile> file,
                           std::unique_ptr<parquet::Writer> writer,
                           const std::vector<parquet::Column>& columns)
    : file_(std::move(file)), writer_(std::move(writer)) {
  for (const parquet::Column& column : columns) {
    ColumnRows rows;
    rows.type = column.type;
    rows.is_optional = column.is_optional;
    columns_.push_back(std::move(rows));
  }
}

Result<ParquetTable> ParquetTable::create(const std::string& path,
                                          std::vector<parquet::Column> columns) {
  auto opened = storage::OutputFile::create(path, true);
  if (!opened.ok()) return opened.error();
  auto file = std::make_unique<storage::OutputFile>(std::move(*opened));
  auto writer = parquet::Writer::create(*file, columns);
  if (!writer.ok()) return writer.error();
  return ParquetTable(std::move(file), std::move(*writer), columns);
}

void ParquetTable::number(uint64_t value) {
  ColumnRows& column = columns_[next_++];
  if (column.type == parquet::Type::kUint32) {
    column.small.push_back(static_cast<uint32_t>(value));
  } else {
    column.large.push_back(value);
  }
  if (column.is_optional) column.present.push_back(1);
}

void ParquetTable::text(std::string_view value) {
  ColumnRows& column = columns_[next_++];
  column.bytes.append(value);
  column.ends.push_back(column.bytes.size());
  if (column.is_optional) column.present.push_back(1);
}

void ParquetTable::null() {
  const ColumnRows& column = columns_[next_];
  if (column.type == parquet::Type::kString) {
    text("");
  } else {
    number(0);
  }
  columns_[next_ - 1].present.back() = 0;
}

Status ParquetTable::end_row() {
  next_ = 0;
  return ++rows_ < kBatchRows ? Status() : flush();
}

Status ParquetTable::flush() {
  if (rows_ == 0) return {};
  std::vector<std::vector<std::string_view>> texts(columns_.size());
  std::vector<parquet::ColumnValues> batch;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const ColumnRows& column = columns_[i];
    if (column.type == parquet::Type::kString) {
      size_t begin = 0;
      for (const size_t end : column.ends) {
        texts[i].push_back(std::string_view(column.bytes).substr(begin, end - begin));
        begin = end;
      }
      batch.emplace_back(texts[i], column.present);
    } else if (column.type == parquet::Type::kUint32) {
      batch.emplace_back(column.small, column.present);
    } else {
      batch.emplace_back(column.large, column.present);
    }
  }
  const Status appended = writer_->append(batch);
  rows_ = 0;
  for (ColumnRows& column : columns_) {
    column.small.clear();
    column.large.clear();
    column.bytes.clear();
    column.ends.clear();
    column.present.clear();
  }
  return appended;
}

Status ParquetTable::finish() {
  COLLECT_TRY(flush());
  return writer_->finish();
}

Status ParquetTable::commit(convert::ConvertLog& log) {
  COLLECT_TRY(file_->commit());
  log.wrote(file_->path(), file_->size());
  return {};
}

}  // namespace collect::exports
