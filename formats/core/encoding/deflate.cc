#include "formats/core/encoding/deflate.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>

namespace collect {
namespace {

constexpr uint32_t kLevel = 1;
constexpr size_t kOutBytes = 64 << 10;
constexpr size_t kMaxStepBytes = size_t{1} << 30;  // ISA-L counts in 32 bits

// Level 1 needs a work space that the caller keeps.
struct Stream {
  isal_zstream z{};
  std::vector<uint8_t> space = std::vector<uint8_t>(ISAL_DEF_LVL1_DEFAULT);

  void begin(uint16_t wrapper) {
    isal_deflate_init(&z);
    z.level = kLevel;
    z.level_buf = space.data();
    z.level_buf_size = static_cast<uint32_t>(space.size());
    z.gzip_flag = wrapper;
    z.flush = NO_FLUSH;
  }
  void give(Bytes bytes, bool is_last) {
    z.next_in = const_cast<uint8_t*>(bytes.data());  // it is only read
    z.avail_in = static_cast<uint32_t>(bytes.size());
    z.end_of_stream = is_last ? 1 : 0;
  }
};

}  // namespace

struct ZlibPieces::State {
  Stream stream;
};

ZlibPieces::ZlibPieces() : state_(std::make_unique<State>()) {}
ZlibPieces::~ZlibPieces() = default;

void ZlibPieces::append(std::vector<uint8_t>& to, Bytes piece) {
  COLLECT_CHECK(piece.size() <= kMaxStepBytes);
  Stream& stream = state_->stream;
  stream.begin(IGZIP_ZLIB);
  stream.give(piece, true);
  do {
    const size_t at = to.size();
    to.resize(at + kOutBytes);
    stream.z.next_out = to.data() + at;
    stream.z.avail_out = kOutBytes;
    COLLECT_CHECK(isal_deflate(&stream.z) == COMP_OK);
    to.resize(at + kOutBytes - stream.z.avail_out);
  } while (stream.z.internal_state.state != ZSTATE_END);
}

struct GzipSink::State {
  Stream stream;
  std::vector<uint8_t> out = std::vector<uint8_t>(kOutBytes);
};

GzipSink::GzipSink(ByteSink& out) : out_(out), state_(std::make_unique<State>()) {
  state_->stream.begin(IGZIP_GZIP);
}
GzipSink::~GzipSink() = default;

Status GzipSink::write(Bytes bytes) {
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kMaxStepBytes);
    COLLECT_TRY(run(bytes.first(step), false));
    bytes = bytes.subspan(step);
  }
  return {};
}

Status GzipSink::finish() {
  return run({}, true);
}

Status GzipSink::run(Bytes bytes, bool is_last) {
  isal_zstream& z = state_->stream.z;
  state_->stream.give(bytes, is_last);
  bool is_full = false;
  do {
    z.next_out = state_->out.data();
    z.avail_out = static_cast<uint32_t>(state_->out.size());
    COLLECT_CHECK(isal_deflate(&z) == COMP_OK);
    const size_t made = state_->out.size() - z.avail_out;
    is_full = z.avail_out == 0;
    if (made != 0) COLLECT_TRY(out_.write(Bytes(state_->out).first(made)));
  } while (is_last ? z.internal_state.state != ZSTATE_END : is_full || z.avail_in != 0);
  return {};
}

}  // namespace collect
