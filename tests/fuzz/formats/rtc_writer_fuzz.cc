// Any sequence of calls to the writer: every file it leaves is read without a complaint, and gives
// back what went in.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "formats/rtc/check.h"
#include "formats/rtc/meta/value.h"
#include "formats/rtc/writer.h"

namespace {

using namespace collect;

class Calls {
 public:
  Calls(const uint8_t* data, size_t size) : in_(Bytes(data, size)) {}

  void run() {
    rtc::WriterOptions options;
    options.geometry.unit_bytes = uint64_t{2048} << in_.u8() % 5;
    options.geometry.minor_bytes = options.geometry.unit_bytes >> in_.u8() % 5;
    if (in_.u8() % 2 != 0) options.special = rtc::SpecialFrames::kPrefixed;
    auto created = rtc::Writer::create(sink_, options);
    if (!created) return;
    rtc::Writer& writer = created.value();
    while (in_.ok() && in_.remaining() > 0 && sink_.bytes().size() < (1u << 20)) call(writer);
    if (finish_) COLLECT_CHECK(writer.finish().ok());
    if (!finish_) COLLECT_CHECK(writer.flush().ok());
    check();
  }

 private:
  void call(rtc::Writer& writer) {
    const uint8_t what = in_.u8();
    if (what % 8 == 0) {
      open(writer);
    } else if (what == 255) {
      COLLECT_CHECK(writer.flush().ok());
    } else if (!ids_.empty()) {
      write(writer, what % 2 != 0);
    }
    finish_ = what % 3 != 0;
  }
  void open(rtc::Writer& writer) {
    rtc::StreamInfo info;
    const uint8_t kind = in_.u8();
    info.name = "s" + std::to_string(ids_.size()) + std::string(kind, 'n');
    if (kind % 4 == 1) info.length = in_.u16() % 1025;
    if (kind % 4 == 2) {
      info.is_clock = true;
      info.format = rtc::Format::parse("timespec");
    }
    const auto id = writer.open_stream(info);
    if (!id) {
      COLLECT_CHECK(id.code() == Code::kLimit);
      return;
    }
    ids_.push_back({id.value(), info.length, info.is_clock});
  }
  void write(rtc::Writer& writer, bool more) {
    const auto& stream = ids_[in_.u8() % ids_.size()];
    size_t size = in_.u16() % 5000;
    if (stream.is_clock) size = rtc::kTimespecBytes;
    if (stream.length) size = *stream.length * (1 + size % 3);
    const std::vector<uint8_t> object(size, 0xB9);
    COLLECT_CHECK(writer.write(stream.id, object, more && !stream.is_clock).ok());
    if (!stream.is_clock) bytes_ += size;
  }
  void check() const {
    rtc::ReaderOptions options;
    uint64_t open = 0;
    auto summary = rtc::check_file(sink_.bytes(), options);
    COLLECT_CHECK(summary.ok());
    for (const rtc::Finding& finding : summary->findings.list()) {
      open += finding.rule == rtc::Rule::kObjectDropped;
      COLLECT_CHECK(finding.rule == rtc::Rule::kObjectDropped ||
                    (!finish_ && finding.rule == rtc::Rule::kCrcMissing));
    }
    uint64_t found = 0;
    for (const auto& stream : summary->streams) {
      if (!stream.info.is_clock) found += stream.bytes;
    }
    COLLECT_CHECK(open == 0 ? found == bytes_ : found <= bytes_);
  }

  struct Stream {
    uint64_t id;
    std::optional<uint32_t> length;
    bool is_clock;
  };
  ByteReader in_;
  VectorSink sink_;
  std::vector<Stream> ids_;
  uint64_t bytes_ = 0;
  bool finish_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Calls(data, size).run();
  return 0;
}
