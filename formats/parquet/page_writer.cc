#include "formats/parquet/page_writer.h"

#include <zstd.h>

#include <string>
#include <utility>

#include "formats/core/crc32.h"

namespace collect::parquet {

void PageWriter::FreeZstd::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

PageWriter::PageWriter(ByteSink& out) : out_(out), zstd_(ZSTD_createCCtx()) {}

Status PageWriter::fail(Error error) {
  status_ = std::move(error);
  return status_;
}

Status PageWriter::write(Bytes bytes) {
  if (!status_.ok()) return status_;
  status_ = out_.write(bytes);
  if (!status_.ok()) return status_;
  offset_ += bytes.size();
  uncompressed_offset_ += bytes.size();
  return {};
}

Result<bool> PageWriter::append_compressed(Bytes values, bool always) {
  if (zstd_ == nullptr) return Error{Code::kExhausted, "zstd: no memory for a compression context"};
  const size_t before = body_.size();
  body_.resize(before + ZSTD_compressBound(values.size()));
  const size_t size = ZSTD_compressCCtx(zstd_.get(), body_.data() + before, body_.size() - before,
                                        values.data(), values.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0) {
    return Error{Code::kExhausted, std::string("zstd: ") + ZSTD_getErrorName(size)};
  }
  body_.resize(before + size);
  if (always || size < values.size()) return true;
  body_.resize(before);
  body_.insert(body_.end(), values.begin(), values.end());
  return false;
}

ThriftWriter PageWriter::begin_header(PageType type, size_t uncompressed_bytes) {
  header_.clear();
  ThriftWriter thrift(header_);
  thrift.begin_struct();
  thrift.i32(PageHeaderField::kType, static_cast<int32_t>(type));
  thrift.i32(PageHeaderField::kUncompressedPageSize, static_cast<int32_t>(uncompressed_bytes));
  thrift.i32(PageHeaderField::kCompressedPageSize, static_cast<int32_t>(body_.size()));
  thrift.i32(PageHeaderField::kCrc, static_cast<int32_t>(crc32_ieee(body_)));
  return thrift;
}

Status PageWriter::write_page(size_t uncompressed_bytes) {
  COLLECT_TRY(write(header_));
  COLLECT_TRY(write(body_));
  uncompressed_offset_ = uncompressed_offset_ - body_.size() + uncompressed_bytes;
  return {};
}

Status PageWriter::write_dictionary_page(Bytes values, size_t count) {
  if (!status_.ok()) return status_;
  body_.clear();
  const auto compressed = append_compressed(values, true);
  if (!compressed.ok()) return fail(compressed.error());
  ThriftWriter thrift = begin_header(PageType::kDictionaryPage, values.size());
  thrift.begin_struct(PageHeaderField::kDictionaryPageHeader);
  thrift.i32(DictionaryPageHeaderField::kNumValues, static_cast<int32_t>(count));
  thrift.i32(DictionaryPageHeaderField::kEncoding, static_cast<int32_t>(Encoding::kPlain));
  thrift.end_struct();
  thrift.end_struct();
  return write_page(values.size());
}

Status PageWriter::write_data_page(const DataPage& page) {
  if (!status_.ok()) return status_;
  const size_t level_bytes = page.definition_levels.size();
  const size_t uncompressed_bytes = level_bytes + page.values.size();
  body_.assign(page.definition_levels.begin(), page.definition_levels.end());
  const auto compressed = append_compressed(page.values, false);
  if (!compressed.ok()) return fail(compressed.error());
  ThriftWriter thrift = begin_header(PageType::kDataPageV2, uncompressed_bytes);
  thrift.begin_struct(PageHeaderField::kDataPageHeaderV2);
  thrift.i32(DataPageHeaderV2Field::kNumValues, static_cast<int32_t>(page.rows));
  thrift.i32(DataPageHeaderV2Field::kNumNulls, static_cast<int32_t>(page.nulls));
  thrift.i32(DataPageHeaderV2Field::kNumRows, static_cast<int32_t>(page.rows));
  thrift.i32(DataPageHeaderV2Field::kEncoding, static_cast<int32_t>(page.encoding));
  thrift.i32(DataPageHeaderV2Field::kDefinitionLevelsByteLength, static_cast<int32_t>(level_bytes));
  thrift.i32(DataPageHeaderV2Field::kRepetitionLevelsByteLength, 0);
  thrift.boolean(DataPageHeaderV2Field::kIsCompressed, *compressed);
  thrift.end_struct();
  thrift.end_struct();
  return write_page(uncompressed_bytes);
}

}  // namespace collect::parquet
