// Compression by ISA-L's deflate, fast rather than small (RFC 1950, 1951, 1952).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect {

// Whole pieces, each a zlib stream of its own. Keeps its work space (about 300 KB); one thread at a
// time uses it.
class ZlibPieces {
 public:
  ZlibPieces();
  ~ZlibPieces();
  ZlibPieces(const ZlibPieces&) = delete;
  ZlibPieces& operator=(const ZlibPieces&) = delete;

  // Appends the stream. `piece` is at most 1 GiB.
  void append(std::vector<uint8_t>& to, Bytes piece);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A gzip file, written as it comes: what goes in here comes out packed at `out`, which it borrows.
// One thread.
class GzipSink final : public ByteSink {
 public:
  explicit GzipSink(ByteSink& out);
  ~GzipSink() override;

  Status write(Bytes bytes) override;
  // Writes the end; nothing may be written afterwards.
  Status finish();

 private:
  struct State;
  Status run(Bytes bytes, bool is_last);

  ByteSink& out_;
  std::unique_ptr<State> state_;
};

}  // namespace collect
