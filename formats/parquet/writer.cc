#include "formats/parquet/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <variant>

#include "formats/core/text/printable.h"
#include "formats/core/text/utf8_text.h"
#include "formats/parquet/footer.h"
#include "formats/parquet/thrift_writer.h"

namespace collect::parquet {

namespace {

Error invalid(std::string what) {
  return {Code::kInvalidArgument, "Parquet: " + std::move(what)};
}

std::string in_words(const Column& column) {
  return "column " + in_quotes(column.name);
}

bool has_encoding(const Column& column) {
  switch (column.encoding) {
    case Encoding::kPlain:
    case Encoding::kRleDictionary:
      return true;
    case Encoding::kDeltaBinaryPacked:
      return is_integer(column.type);
    case Encoding::kRle:
      break;
  }
  return false;
}

Status check_columns(const std::vector<Column>& columns) {
  if (columns.empty()) return invalid("a file needs a column");
  if (columns.size() > kMaxColumns) {
    return Error{Code::kLimit, fmt::format("Parquet: more than {} columns", kMaxColumns)};
  }
  std::unordered_set<std::string_view> names;
  for (const Column& column : columns) {
    if (column.name.empty() || !is_utf8(column.name)) {
      return invalid(in_words(column) + ": a name is UTF-8 and not empty");
    }
    if (!names.insert(column.name).second) return invalid(in_words(column) + " is there twice");
    if (!has_encoding(column)) {
      return invalid(in_words(column) + ": this encoding is not for values of its type");
    }
  }
  return {};
}

Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::create(ByteSink& out, std::vector<Column> columns,
                                               WriterOptions options) {
  COLLECT_TRY(check_columns(columns));
  if (options.row_group_rows == 0 || options.row_group_rows > kMaxRowGroupRows ||
      options.page_rows == 0) {
    return invalid(
        fmt::format("row groups have 1 to {} rows, and pages at least one", kMaxRowGroupRows));
  }
  return std::unique_ptr<Writer>(new Writer(out, std::move(columns), options));
}

Writer::Writer(ByteSink& out, std::vector<Column> columns, WriterOptions options)
    : options_(options), pages_(out) {
  buffers_.reserve(columns.size());
  for (Column& column : columns) buffers_.emplace_back(std::move(column));
}

Status Writer::check(std::span<const ColumnValues> batch) const {
  if (is_finished_) return invalid("rows after the end");
  if (batch.size() != buffers_.size()) {
    return invalid(
        fmt::format("a batch of {} columns, the file has {}", batch.size(), buffers_.size()));
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    const Column& column = buffers_[i].column();
    const ColumnValues& values = batch[i];
    if (values.type() != column.type) return invalid(in_words(column) + ": values of another type");
    if (values.rows() != batch[0].rows()) {
      return invalid(in_words(column) + ": as many values as the columns before have");
    }
    if (!values.present.empty() &&
        (!column.is_optional || values.present.size() != values.rows())) {
      return invalid(in_words(column) +
                     ": nulls are for optional columns, with a mark for each row");
    }
    const auto* texts = std::get_if<std::span<const std::string_view>>(&values.values);
    if (texts == nullptr) continue;
    for (const std::string_view text : *texts) {
      if (text.size() > kMaxStringBytes) {
        return Error{Code::kLimit, fmt::format("Parquet: {}: a string of {} bytes; the limit is {}",
                                               in_words(column), text.size(), kMaxStringBytes)};
      }
    }
  }
  return {};
}

Status Writer::append(std::span<const ColumnValues> batch) {
  if (!status().ok()) return status();
  COLLECT_TRY(check(batch));
  const size_t rows = batch[0].rows();
  for (size_t from = 0; from < rows;) {
    size_t count = std::min(rows - from, options_.row_group_rows - buffers_[0].rows());
    for (size_t i = 0; i < batch.size(); ++i) {
      count = buffers_[i].rows_with_room(batch[i], from, count);
    }
    for (size_t i = 0; i < batch.size(); ++i) buffers_[i].append(batch[i], from, count);
    from += count;
    // With nothing added there is no room: one string always fits into an empty row group.
    if (count == 0 || buffers_[0].rows() == options_.row_group_rows) COLLECT_TRY(write_row_group());
  }
  return {};
}

void Writer::add_key_value(std::string_view key, std::string_view value) {
  auto& added = key_values_.emplace_back();
  append_utf8(key, added.first);
  append_utf8(value, added.second);
}

Status Writer::write_row_group() {
  if (pages_.offset() == 0) COLLECT_TRY(pages_.write(as_bytes(kMagic)));
  const size_t rows = buffers_[0].rows();
  const uint64_t begin = pages_.offset();
  const uint64_t uncompressed_begin = pages_.uncompressed_offset();
  ThriftWriter thrift(row_groups_);
  thrift.begin_struct();
  thrift.begin_list(RowGroupField::kColumns, ThriftType::kStruct, buffers_.size());
  for (ColumnBuffer& buffer : buffers_) {
    COLLECT_TRY(chunks_.write(buffer, thrift));
    buffer.clear();
  }
  thrift.i64(RowGroupField::kTotalByteSize,
             static_cast<int64_t>(pages_.uncompressed_offset() - uncompressed_begin));
  thrift.i64(RowGroupField::kNumRows, static_cast<int64_t>(rows));
  thrift.i64(RowGroupField::kFileOffset, static_cast<int64_t>(begin));
  thrift.i64(RowGroupField::kTotalCompressedSize, static_cast<int64_t>(pages_.offset() - begin));
  thrift.end_struct();
  rows_written_ += rows;
  ++row_group_count_;
  return {};
}

Status Writer::write_footer() {
  if (pages_.offset() == 0) COLLECT_TRY(pages_.write(as_bytes(kMagic)));
  std::vector<uint8_t> footer =
      encode_file_metadata({buffers_, rows_written_, row_group_count_, row_groups_, key_values_});
  const size_t size = footer.size();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return pages_.fail({Code::kLimit, "Parquet: a footer over 2 GiB: too many row groups"});
  }
  footer.resize(size + sizeof(uint32_t));
  store_le(footer.data() + size, static_cast<uint32_t>(size));
  footer.insert(footer.end(), kMagic.begin(), kMagic.end());
  return pages_.write(footer);
}

Status Writer::finish() {
  if (is_finished_ || !status().ok()) return status();
  is_finished_ = true;
  if (buffers_[0].rows() != 0) COLLECT_TRY(write_row_group());
  return write_footer();
}

}  // namespace collect::parquet
