// Any bytes as a trace of another program, for each reader: they end, and what they say is
// consistent.
#include <cstdint>

#include "formats/chrome/reader.h"
#include "formats/folded/reader.h"
#include "formats/perfetto/reader.h"
#include "formats/speedscope/reader.h"
#include "tests/formats/core/recorded_timeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const Bytes file(data, size);
  using Reader = Status (*)(Bytes, TimelineSink&);
  using Sniff = bool (*)(Bytes);
  constexpr std::pair<Sniff, Reader> kReaders[] = {
      {chrome::looks_like_chrome, chrome::read_events},
      {folded::looks_like_folded, folded::read_stacks},
      {perfetto::looks_like_perfetto, perfetto::read_packets},
      {speedscope::looks_like_speedscope, speedscope::read_profiles}};
  for (const auto& [looks_like, read] : kReaders) {
    constexpr uint32_t kMaxTracks = 64;
    testing::RecordedTimeline found(kMaxTracks);
    (void)looks_like(file);
    const Status status = read(file, found);
    COLLECT_CHECK(status.ok() || !status.error().message.empty());
  }
  return 0;
}
