#include "daemon/upload/object_sink.h"

#include <fmt/core.h>
#include <zstd.h>

#include "formats/core/crc32.h"

namespace collect::upload {

struct ObjectSink::Decompressor {
  struct Free {
    void operator()(ZSTD_DCtx* freed) const { ZSTD_freeDCtx(freed); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
  std::vector<uint8_t> output = std::vector<uint8_t>(ZSTD_DStreamOutSize());
  bool is_frame_open = false;
};

ObjectSink::ObjectSink(const CommittedFile& wanted, storage::UntrustedFile& file)
    : wanted_(wanted),
      file_(file),
      decompressor_(wanted.is_compressed ? std::make_unique<Decompressor>() : nullptr) {}

ObjectSink::~ObjectSink() = default;

Status ObjectSink::store(Bytes bytes) {
  COLLECT_TRY(file_.append(bytes));
  crc32c_ = crc32c(bytes, crc32c_);
  return {};
}

Status ObjectSink::write(Bytes bytes) {
  object_bytes_ += bytes.size();
  object_crc32c_ = crc32c(bytes, object_crc32c_);
  if (object_bytes_ > wanted_.object_bytes) {
    return Error{Code::kDamaged, wanted_.object + ": longer than COMMIT says"};
  }
  if (decompressor_ == nullptr) return store(bytes);
  Decompressor& state = *decompressor_;
  if (state.context == nullptr) return Error{Code::kExhausted, "no memory to decompress"};
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  bool is_output_full = false;
  while (input.pos < input.size || is_output_full) {
    ZSTD_outBuffer output{state.output.data(), state.output.size(), 0};
    const size_t left = ZSTD_decompressStream(state.context.get(), &output, &input);
    if (ZSTD_isError(left)) {
      return Error{Code::kDamaged, fmt::format("{} before byte {}: zstd: {}", wanted_.object,
                                               object_bytes_, ZSTD_getErrorName(left))};
    }
    state.is_frame_open = left != 0;
    is_output_full = output.pos == output.size;
    COLLECT_TRY(store({state.output.data(), output.pos}));
  }
  return {};
}

Status ObjectSink::finish() {
  if (object_bytes_ != wanted_.object_bytes || object_crc32c_ != wanted_.object_crc32c) {
    return Error{Code::kDamaged,
                 fmt::format("{}: {} bytes whose size or checksum is not that of COMMIT",
                             wanted_.object, object_bytes_)};
  }
  const bool is_cut = decompressor_ != nullptr && decompressor_->is_frame_open;
  if (is_cut || file_.size() != wanted_.bytes || crc32c_ != wanted_.crc32c) {
    return Error{Code::kDamaged,
                 fmt::format("{}: holds {} bytes whose size or checksum is not that of COMMIT",
                             wanted_.object, file_.size())};
  }
  return {};
}

}  // namespace collect::upload
