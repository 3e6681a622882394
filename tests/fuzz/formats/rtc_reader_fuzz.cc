// Any bytes as a container: opened, iterated by objects and by frames, sought, checked. What must
// hold of every input is checked and ends the run.
#include <cstdint>

#include "formats/core/result.h"
#include "formats/rtc/check.h"
#include "formats/rtc/read/reader.h"

namespace {

using namespace collect;

void read_objects(rtc::Reader& reader, size_t size) {
  for (rtc::Object object; reader.next(object);) {
    COLLECT_CHECK(object.stream != nullptr && object.offset < size);
    COLLECT_CHECK(object.payload().size() == object.size);
    COLLECT_CHECK(object.size < size);
    (void)reader.value(object);
    (void)reader.annotation(object);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file(data, size);
  rtc::ReaderOptions options;
  options.repair_torn_frames = size % 2 != 0;
  auto reader = rtc::Reader::open(file, options);
  const auto summary = rtc::check_file(file, options);
  COLLECT_CHECK(reader.ok() == summary.ok());
  if (!reader) return 0;
  read_objects(reader.value(), size);
  COLLECT_CHECK(reader->frames() == summary.value().frames);
  COLLECT_CHECK(summary.value().tail_bytes + summary.value().head_bytes <= size);
  for (const uint64_t place : {uint64_t{0}, uint64_t{size / 3}, uint64_t{size - 1}}) {
    const auto landed = reader->seek_offset(place);
    if (landed && reader->head_bytes() <= place) COLLECT_CHECK(landed.value() <= place);
    rtc::Frame frame;
    for (int i = 0; i < 20 && reader->next_frame(frame); ++i) COLLECT_CHECK(frame.offset < size);
  }
  (void)reader->seek_unit(1);
  (void)reader->seek_time(static_cast<int64_t>(size) * 1000000);
  read_objects(reader.value(), size);
  return 0;
}
