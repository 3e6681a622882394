// Notes of calls and of events: names that are interned, and their limit.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/formats/perfetto/writer_fixture.h"

namespace collect::perfetto {
namespace {

// ---- notes

TEST_F(PerfettoWriter, NumbersANoteOfAnEndAfterKnownOnes) {
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  const EventNotes first = {{"a", EventNote::Kind::kNumber, 3, {}}};
  const EventNotes second = {{"b", EventNote::Kind::kFlag, 1, {}},
                             {"a", EventNote::Kind::kNumber, 4, {}}};
  const EventNotes none;
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &first);
  call(1000, 0);
  writer_.end_call(1000, &second);
  writer_.end_call(1000, &none);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 6u);
  EXPECT_EQ(packets[4], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x0e, 0x48, 0x02,  //
                             0x22, 0x04, 0x08, 0x02, 0x10, 0x01,  // note 2: true
                             0x22, 0x04, 0x08, 0x01, 0x18, 0x04,  // note 1: 4
                             0x62, 0x07, 0x1a, 0x05, 0x08, 0x02, 0x12, 0x01, 'b'}));
  EXPECT_EQ(packets[5], (Raw{0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x02, 0x48, 0x02}));
}

size_t count_of(const Raw& packet, const std::string& text) {
  const std::string all(packet.begin(), packet.end());
  size_t count = 0;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++count;
  return count;
}

// 65 notes with names of their own.
struct ManyNotes {
  ManyNotes() {
    for (size_t i = 0; i < kMaxAnnotations + 1; ++i)
      names.push_back("name" + std::to_string(100 + i));
    for (const std::string& name : names) {
      notes.push_back({name, EventNote::Kind::kText, 0, "said"});
    }
  }
  std::vector<std::string> names;
  EventNotes notes;
};

TEST_F(PerfettoWriter, NotesOfAnEventHaveALimit) {
  const ManyNotes many;
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &many.notes);
  writer_.instant(6, 1000, "m", many.notes);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 4u);
  for (const size_t i : {2, 3}) {
    EXPECT_EQ(count_of(packets[i], "said"), kMaxAnnotations) << i;
    EXPECT_EQ(count_of(packets[i], "name163"), 1u) << i;
    EXPECT_EQ(count_of(packets[i], "name164"), 0u) << i;
  }
}

// A sequence numbers 64 names of notes; those that come later are said each time.
TEST_F(PerfettoWriter, WritesNamesOfNotesBeyondTheLimitEachTime) {
  const ManyNotes many;
  writer_.begin_thread({7, 42, 43, ""}, 1000);
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &many.notes);
  const EventNotes notes = {{"n", EventNote::Kind::kNumber, 5, {}},
                            {"name163", EventNote::Kind::kNumber, 6, {}}};
  for (int i = 0; i < 2; ++i) {
    writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &notes);
  }
  writer_.lose(1000, 1000);
  writer_.begin_call(1000, 0, [] { return std::string_view("f"); }, &notes);
  const auto packets = finish();
  ASSERT_EQ(packets.size(), 5u + 3 + 1 + 1);
  const Raw plain = {0x40, 0x00, 0x50, 0x02, 0x68, 0x02, 0x5a, 0x11, 0x48, 0x01, 0x50, 0x01,  //
                     0x22, 0x05, 0x52, 0x01, 'n',  0x18, 0x05,  // by name: 5
                     0x22, 0x04, 0x08, 0x40, 0x18, 0x06};       // note 64: 6
  EXPECT_EQ(packets[3], plain);
  EXPECT_EQ(packets[4], plain);
  EXPECT_EQ(count_of(packets[9], "\x1a\x05\x08\x01\x12\x01n"), 1u)
      << "numbered again behind a loss";
}

}  // namespace
}  // namespace collect::perfetto
