// Valid files for lod_fuzz: lod_seeds CORPUS
#include <cstdio>
#include <fstream>
#include <string>

#include "formats/calls/lod/lod_builder.h"

namespace {

using namespace collect;
using namespace collect::calls;

struct Event {
  uint64_t timestamp_ns;
  atf::EventKind kind;
  uint64_t function_id;
  uint64_t detail_seq = atf::kNoDetail;
};

struct Events {
  std::vector<Event> all;
  uint64_t size() const { return all.size(); }
  Event event(uint64_t seq) const { return all[seq]; }
  uint64_t time_of(uint64_t seq) const { return all[seq].timestamp_ns; }
  struct Span {
    const Events& events;
    uint64_t first, count;
    template <class F>
    void for_each(F&& f) const {
      for (uint64_t seq = first; seq < first + count; ++seq) f(seq, events.all[seq]);
    }
  };
  Span events(uint64_t first, uint64_t count) const { return {*this, first, count}; }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const uint32_t leaf : {1u, 2u, 3u, 7u}) {
    Events events;
    for (uint64_t i = 0; i < 20 * leaf; ++i) {
      events.all.push_back({100 + 10 * i,
                            i % 3 == 2 ? atf::EventKind::kReturn : atf::EventKind::kCall,
                            i % 3 == 2 ? i % 5 + 1 : i % 5});
    }
    VectorSink body;
    LodBuilder builder(body, leaf);
    LodSummary summary;
    CallSink nothing;
    const std::vector<Gap> gaps = {{7, 2, 0, 0}};
    const auto header =
        build_lod(events, gaps, {}, {events.size(), 1, 2, 3}, builder, summary, nothing);
    if (!header.ok()) return 1;
    std::ofstream out(std::string(argv[1]) + "/lod_fuzz/leaf_" + std::to_string(leaf),
                      std::ios::binary);
    for (const auto& part : {*header, body.bytes()}) {
      out.write(reinterpret_cast<const char*>(part.data()),
                static_cast<std::streamsize>(part.size()));
    }
  }
  return 0;
}
