// Where a streaming writer puts its bytes. Codecs know bytes, not files: the owner of the file, the
// socket or the buffer implements this.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect {

class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;

  // Takes all bytes, in order, or says why not; after an error the writer stops.
  virtual Status write(Bytes bytes) = 0;
};

// For tests and for small outputs.
class VectorSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace collect
