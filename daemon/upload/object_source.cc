#include "daemon/upload/object_source.h"

#include <fmt/core.h>
#include <zstd.h>

#include "formats/core/crc32.h"

namespace collect::upload {

struct ObjectSource::Compressor {
  struct Free {
    void operator()(ZSTD_CCtx* freed) const { ZSTD_freeCCtx(freed); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  std::vector<uint8_t> input = std::vector<uint8_t>(kReadBytes);
  ZSTD_inBuffer pending{input.data(), 0, 0};
  bool at_end = false;  // of the file
  bool done = false;    // the frame has ended
};

ObjectSource::ObjectSource(std::unique_ptr<storage::File> file,
                           std::unique_ptr<Compressor> compressor)
    : file_(std::move(file)), compressor_(std::move(compressor)) {}

ObjectSource::~ObjectSource() = default;

Result<std::unique_ptr<ObjectSource>> ObjectSource::open(storage::Fs& fs, const std::string& path,
                                                         bool compressed) {
  auto file = fs.open(path, storage::OpenMode::kRead);
  if (!file.ok()) return file.error();
  std::unique_ptr<Compressor> compressor;
  if (compressed) {
    compressor = std::make_unique<Compressor>();
    if (compressor->context == nullptr) {
      return Error{Code::kExhausted, path + ": no memory to compress it"};
    }
    // With a checksum in the frame, every reader notices damage.
    ZSTD_CCtx_setParameter(compressor->context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
    ZSTD_CCtx_setParameter(compressor->context.get(), ZSTD_c_checksumFlag, 1);
  }
  return std::unique_ptr<ObjectSource>(new ObjectSource(std::move(*file), std::move(compressor)));
}

Result<size_t> ObjectSource::read_file(MutableBytes out) {
  const Result<size_t> got = file_->read_at(file_bytes_, out);
  if (!got.ok()) return got;
  file_crc32c_ = crc32c(out.first(*got), file_crc32c_);
  file_bytes_ += *got;
  return got;
}

Result<size_t> ObjectSource::read_compressed(MutableBytes out) {
  Compressor& state = *compressor_;
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  while (!state.done && output.pos < output.size) {
    if (state.pending.pos == state.pending.size && !state.at_end) {
      const Result<size_t> got = read_file(state.input);
      if (!got.ok()) return got;
      state.pending = {state.input.data(), *got, 0};
      state.at_end = *got < state.input.size();
    }
    const size_t left = ZSTD_compressStream2(state.context.get(), &output, &state.pending,
                                             state.at_end ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) {
      return Error{Code::kExhausted,
                   fmt::format("{}: zstd: {}", file_->path(), ZSTD_getErrorName(left))};
    }
    state.done = state.at_end && left == 0;
  }
  return output.pos;
}

Result<size_t> ObjectSource::read(MutableBytes out) {
  return compressor_ == nullptr ? read_file(out) : read_compressed(out);
}

}  // namespace collect::upload
