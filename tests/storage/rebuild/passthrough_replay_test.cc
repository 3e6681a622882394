// A stream of another format out of containers: what continues behind what is stored, what waits
// for the next header, and what is said of the rest.
#include "storage/rebuild/passthrough_replay.h"

#include <numeric>

#include "tests/fakes/dial9_stream.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using fakes::dial9_stream;
using fakes::dial9_whole_bytes;

class PassthroughReplayTest : public SessionTest {
 protected:
  PassthroughReplayTest() : session_(make()) {}

  // Cuts at frames' ends: `count` objects of about the same length.
  static std::vector<Bytes> objects_of(Bytes stream, size_t count) {
    std::vector<Bytes> objects;
    size_t at = 0;
    for (size_t i = 1; i <= count; ++i) {
      const size_t end =
          i == count ? stream.size() : dial9_whole_bytes(stream.first(stream.size() * i / count));
      objects.push_back(stream.subspan(at, end - at));
      at = end;
    }
    return objects;
  }
  // The sentence, empty when there is none.
  std::string take(Bytes object) {
    const auto taken = replay_.take(*session_, object);
    EXPECT_OK(taken);
    return taken.ok() ? taken->value_or("") : "";
  }
  std::string finish(const PassthroughStream& last) {
    const auto finished = replay_.finish(*session_, last);
    EXPECT_OK(finished);
    EXPECT_OK(session_->seal(SessionState::kComplete, ""));
    return finished.ok() ? finished->value_or("") : "";
  }
  std::vector<uint8_t> stored() { return read_file(session_->directory() + "/stream.dial9"); }
  PassthroughStream in_manifest() {
    return manifest_of(session_->directory()).passthrough_streams.at(0);
  }

  static std::vector<uint8_t> joined(std::initializer_list<Bytes> parts) {
    std::vector<uint8_t> all;
    for (const Bytes part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  std::unique_ptr<Session> session_;
  PassthroughReplay replay_{PassthroughKind::kDial9};
};

TEST_F(PassthroughReplayTest, RestoresACompleteStream) {
  const std::vector<uint8_t> stream = dial9_stream(1, 300);
  uint64_t at = 0;
  for (const Bytes object : objects_of(stream, 4)) {
    replay_.expect(at);
    EXPECT_EQ(take(object), "");
    at += object.size();
  }
  EXPECT_EQ(finish({.bytes = stream.size()}), "");
  EXPECT_EQ(stored(), stream);
  EXPECT_EQ(in_manifest().refused_bytes, 0u);
  EXPECT_EQ(in_manifest().problem, "");
}

TEST_F(PassthroughReplayTest, ContainerThatIsGivenTwiceIsStoredOnce) {
  const std::vector<uint8_t> stream = dial9_stream(1, 300);
  const auto objects = objects_of(stream, 3);
  for (const Bytes object : objects) EXPECT_EQ(take(object), "");
  replay_.expect(objects[0].size());
  EXPECT_EQ(take(objects[1]), "");
  EXPECT_EQ(take(objects[2]), "");
  EXPECT_EQ(finish({.bytes = stream.size()}), "");
  EXPECT_EQ(stored(), stream);
}

TEST_F(PassthroughReplayTest, BehindAGapItWaitsForTheNextHeader) {
  const std::vector<uint8_t> first = dial9_stream(1, 300), second = dial9_stream(1, 100, 7);
  const auto objects = objects_of(first, 3);
  EXPECT_EQ(take(objects[0]), "");
  const uint64_t place = objects[0].size() + objects[1].size();
  replay_.expect(place);  // the second is not there
  EXPECT_EQ(take(objects[2]), std::to_string(objects[2].size()) + " bytes at " +
                                  std::to_string(place) +
                                  " of the stream can't be used without what is missing before");
  EXPECT_EQ(take(second), "");
  // Once it continues, what continues it does.
  EXPECT_EQ(take(Bytes(second).subspan(5, 0)), "");
  const uint64_t missing = objects[1].size() + objects[2].size();
  EXPECT_EQ(finish({.bytes = first.size() + second.size(), .refused_bytes = 4, .problem = "cut"}),
            "cut; " + std::to_string(missing) +
                " bytes of the stream are not in the containers, or of no use without the others");
  EXPECT_EQ(stored(), joined({objects[0], second}));
  EXPECT_EQ(in_manifest().refused_bytes, 4 + missing);
  EXPECT_EQ(in_manifest().problem.substr(0, 5), "cut; ");
}

// Frames that could be read are not taken either where bytes may be missing before them.
TEST_F(PassthroughReplayTest, DamageOfTheContainerIsAGap) {
  const std::vector<uint8_t> stream = dial9_stream(1, 300);
  const auto objects = objects_of(stream, 3);
  EXPECT_EQ(take(objects[0]), "");
  replay_.doubt();
  EXPECT_NE(take(objects[1]), "");
  EXPECT_NE(take(objects[2]), "");
  EXPECT_NE(finish({.bytes = stream.size()}), "");
  EXPECT_EQ(stored(), joined({objects[0]}));
}

// A container without its head: which place of the stream its objects have, only its last manifest
// says, and it does not make a gap of it.
TEST_F(PassthroughReplayTest, FromAnyPlaceOn) {
  const std::vector<uint8_t> stream = dial9_stream(1, 300);
  const auto objects = objects_of(stream, 3);
  replay_.begin_anywhere();
  EXPECT_EQ(take(objects[0]), "");
  replay_.expect(5000 + objects[0].size());
  EXPECT_EQ(take(objects[1]), "");
  replay_.expect(5000 + objects[0].size() + objects[1].size());
  EXPECT_EQ(take(objects[2]), "");
  EXPECT_EQ(finish({.bytes = 5000 + stream.size()}),
            "5000 bytes of the stream are not in the containers, or of no use without the others");
  EXPECT_EQ(stored(), stream);
}

TEST_F(PassthroughReplayTest, HeaderWithinAnObjectIsEnough) {
  const std::vector<uint8_t> first = dial9_stream(1, 300), second = dial9_stream(1, 100, 7);
  const Bytes rest = objects_of(first, 2)[1];
  replay_.begin_anywhere();
  EXPECT_EQ(take(joined({rest, second})), "of " + std::to_string(rest.size() + second.size()) +
                                              " bytes at 0 of the stream the first " +
                                              std::to_string(rest.size()) +
                                              " can't be used without what is missing before");
  EXPECT_EQ(finish({.bytes = 0}),
            std::to_string(rest.size()) +
                " bytes of the stream are not in the containers, or of no use "
                "without the others");
  EXPECT_EQ(stored(), second);
}

// The bytes of a header may stand in a value: sixteen such places are looked behind.
TEST_F(PassthroughReplayTest, ValuesThatLookLikeHeadersAreTriedSixteenTimes) {
  const std::vector<uint8_t> stream = dial9_stream(1, 100);
  std::vector<uint8_t> like_header(fakes::kDial9Example.begin(), fakes::kDial9Example.begin() + 5);
  like_header.push_back(0xff);  // no frame has this tag
  std::vector<uint8_t> object;
  for (int i = 0; i < 16; ++i) object.insert(object.end(), like_header.begin(), like_header.end());
  const size_t sixteen = object.size();
  object.insert(object.end(), stream.begin(), stream.end());
  replay_.begin_anywhere();
  EXPECT_NE(take(object), "");
  EXPECT_EQ(session_->totals().stored_bytes, 0u);
  EXPECT_NE(take(Bytes(object).subspan(like_header.size())), "");
  EXPECT_EQ(session_->totals().stored_bytes, stream.size());
  EXPECT_NE(finish({}), "");
  EXPECT_EQ(stored(), stream);
  EXPECT_EQ(in_manifest().refused_bytes, 2 * sixteen - like_header.size() + stream.size());
}

}  // namespace
}  // namespace collect::storage::test
