// Writes pages to the sink: header, levels, and values that zstd has compressed. It counts the
// bytes and keeps the sink's first error, after which nothing is written. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/parquet/layout.h"
#include "formats/parquet/thrift_writer.h"

struct ZSTD_CCtx_s;  // of zstd.h

namespace collect::parquet {

// The counts of a DataPageV2, and its parts before compression.
struct DataPage {
  size_t rows = 0;
  size_t nulls = 0;
  Encoding encoding = Encoding::kPlain;
  Bytes definition_levels;  // RLE, without a length; empty in a required column
  Bytes values;
};

class PageWriter {
 public:
  // `out` is borrowed.
  explicit PageWriter(ByteSink& out);

  // Errors of both: the sink's, or kExhausted where zstd gets no memory.
  Status write_dictionary_page(Bytes values, size_t count);
  Status write_data_page(const DataPage& page);
  // Bytes of the file that are in no page.
  Status write(Bytes bytes);

  // Nothing is written any more: keeps and returns this error.
  Status fail(Error error);

  const Status& status() const { return status_; }
  // Bytes of the file so far.
  uint64_t offset() const { return offset_; }
  // What they would be without compression; only differences mean something.
  uint64_t uncompressed_offset() const { return uncompressed_offset_; }

 private:
  struct FreeZstd {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  // Appends `values` to body_ as they go into a page, and returns whether they are compressed;
  // `always`: even where that makes them longer.
  Result<bool> append_compressed(Bytes values, bool always);
  // header_ is the page's header up to its sizes and checksum; what follows is the header's own
  // structure for the kind of page.
  ThriftWriter begin_header(PageType type, size_t uncompressed_bytes);
  // header_ and body_.
  Status write_page(size_t uncompressed_bytes);

  ByteSink& out_;
  std::unique_ptr<ZSTD_CCtx_s, FreeZstd> zstd_;
  std::vector<uint8_t> header_;
  std::vector<uint8_t> body_;
  uint64_t offset_ = 0;
  uint64_t uncompressed_offset_ = 0;
  Status status_;
};

}  // namespace collect::parquet
