#include "daemon/upload/commit.h"

#include <gmock/gmock.h>

#include "tests/storage/session_fixture.h"

namespace collect::upload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Commit example() {
  Commit commit;
  commit.session = "session_20260131_235959/pid_42";
  commit.process_id = "00112233445566778899aabbccddeeff";
  commit.recording = 3;
  commit.device_id = "phone \"7\"";
  commit.state = "complete";
  commit.part = {"lab-1", "e7"};
  commit.files = {
      {"manifest.json", "manifest.json", false, 10, 1, 10, 1},
      {"thread_0/index.atf", "thread=0/index.atf.zst", true, UINT64_MAX, UINT32_MAX, 7, 5}};
  commit.threads = {{0, 1, 20, 2, {{{0, 8}, {11, 23}}, true}, {{{5, 7}}, false}}};
  return commit;
}

TEST(CommitTest, ReadsBackWhatWasWritten) {
  const std::string json = commit_to_json(example());
  const auto read = commit_from_json(json);
  ASSERT_OK(read);
  EXPECT_EQ(*read, example());
  EXPECT_EQ(commit_to_json(*read), json);
}

TEST(CommitTest, EveryPrefixIsDamaged) {
  const std::string json = commit_to_json(example());
  for (size_t size = 0; size + 2 < json.size(); ++size) {
    EXPECT_EQ(commit_from_json(json.substr(0, size)).code(), Code::kDamaged) << size;
  }
}

TEST(CommitTest, EveryChangedByteIsReadOrRefused) {
  const std::string json = commit_to_json(example());
  size_t refused = 0;
  for (size_t at = 0; at < json.size(); ++at) {
    for (const int change : {1, 2, 16, 128}) {
      std::string changed = json;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto read = commit_from_json(changed);
      if (!read.ok()) {
        ++refused;
      } else {
        for (const CommittedFile& file : read->files)
          EXPECT_EQ(file.object, object_name(file.path).name);
      }
    }
  }
  EXPECT_GT(refused, json.size());
}

TEST(CommitTest, NumbersThatCannotBeAreDamage) {
  const std::string json = commit_to_json(example());
  for (const char* number : {"-1", "1.5", "1e300", "4294967296", "\"3\"", "null"}) {
    std::string changed = json;
    changed.replace(changed.find("\"recording\": 3") + 13, 1, number);
    EXPECT_EQ(commit_from_json(changed).code(), Code::kDamaged) << number;
  }
  std::string range = json;
  range.replace(range.find("23"), 2, "-1");
  EXPECT_EQ(commit_from_json(range).code(), Code::kDamaged);
}

TEST(CommitTest, NoPathLeadsOutOfTheSession) {
  for (const char* path : {"../x", "/etc/passwd", "thread_0/../x", "thread_00/index.atf", "",
                           "resume.key", "COMMIT"}) {
    Commit commit = example();
    commit.files[0].path = path;
    commit.files[0].object = object_name(path).name;
    EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged) << path;
  }
  for (const char* session :
       {"..", "session_20260131_235959", "session_20260131_235959/../x", "/tmp/pid_1"}) {
    Commit commit = example();
    commit.session = session;
    EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged) << session;
  }
  Commit twice = example();
  twice.files.push_back(twice.files[0]);
  EXPECT_EQ(commit_from_json(commit_to_json(twice)).code(), Code::kDamaged);
}

// Seen: "collector": "../../x", which `collectctl download` made a directory of.
TEST(CommitTest, NoNameLeadsOutOfTheDirectory) {
  for (const char* name : {"../../x", "..", ".", "", "/etc", "a/b", "a b", "a\x1b[31m", "a\n",
                           "\xc3\xa9", "\xff", "a\\b"}) {
    Commit commit = example();
    commit.part.collector = name;
    EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged) << name;
    commit = example();
    commit.part.epoch = name;
    EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged) << name;
    commit = example();
    commit.process_id = name;
    EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged) << name;
  }
  Commit commit = example();
  commit.part.collector = std::string(kMaxPartNameBytes + 1, 'c');
  EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged);
  commit = example();
  commit.part.collector = std::string("a\0b", 3);
  EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged);
  commit = example();
  commit.process_id.back() = 'F';
  EXPECT_EQ(commit_from_json(commit_to_json(commit)).code(), Code::kDamaged);
}

TEST(CommitTest, Limits) {
  std::string json = commit_to_json(example());
  json.append(kMaxCommitBytes - json.size(), ' ');
  EXPECT_OK(commit_from_json(json));
  EXPECT_EQ(commit_from_json(json + ' ').code(), Code::kLimit);
  std::string deep = "{\"format\":";
  for (size_t i = 0; i < kCommitShape.depth; ++i) deep += '[';
  EXPECT_EQ(commit_from_json(deep).code(), Code::kLimit);
  std::string other = commit_to_json(example());
  other.replace(other.find("part 1"), 6, "part 2");
  EXPECT_EQ(commit_from_json(other).code(), Code::kUnsupported);
}

storage::Gap gap(uint64_t before, uint64_t lost, uint64_t numbered) {
  storage::Gap gap;
  gap.before_seq = before;
  gap.lost = lost;
  gap.numbered_lost = numbered;
  return gap;
}

// The hand-over that was measured: a collector that took over at record 10,002,432 of a stream.
TEST(NumberRangesTest, GapMovesWhatComesAfterIt) {
  storage::Manifest manifest;
  manifest.gaps = {gap(0, 10'002'432, 10'002'432)};
  EXPECT_THAT(number_ranges(manifest, 0, Lane::kIndex, 16'275'639).ranges,
              ElementsAre(NumberRange{10'002'432, 26'278'071}));
  manifest.gaps = {gap(8, 5, 3), gap(8, 2, 2), gap(10, 4, 0), gap(12, 1, 1)};
  EXPECT_THAT(number_ranges(manifest, 0, Lane::kIndex, 12).ranges,
              ElementsAre(NumberRange{0, 8}, NumberRange{13, 17}));
  EXPECT_THAT(number_ranges(manifest, 0, Lane::kDetail, 4).ranges, ElementsAre(NumberRange{0, 4}));
  EXPECT_THAT(number_ranges(manifest, 1, Lane::kIndex, 0).ranges, ElementsAre());
  EXPECT_TRUE(number_ranges(manifest, 0, Lane::kIndex, 12).is_exact);
  manifest.gaps[0].merged = 2;
  EXPECT_FALSE(number_ranges(manifest, 0, Lane::kIndex, 12).is_exact);
}

TEST(PartKeysTest, NamesAreSafeAndBounded) {
  storage::SessionIdentity identity = storage::test::test_identity();
  identity.device_id = "a/../b=c";
  const auto prefix = part_prefix(identity, {"lab-1", "e7"});
  ASSERT_OK(prefix);
  EXPECT_EQ(
      *prefix,
      "v1/9d/device=a%2F..%2Fb%3Dc/session=0102030405060708090a0b0c0d0e0f10-1/part=lab-1-e7/");
  identity.device_id = "";
  EXPECT_THAT(*part_prefix(identity, {"c", "e"}), HasSubstr("/device=__HIVE_DEFAULT_PARTITION__/"));
  identity.device_id = std::string(4096, '/');
  const std::string one = *part_prefix(identity, {"c", "e"});
  identity.device_id.back() = 'x';
  const std::string other = *part_prefix(identity, {"c", "e"});
  EXPECT_NE(one, other);
  EXPECT_LE(one.size(), 13 + kMaxDeviceKeyBytes + 9 + 43 + 6 + 4);
  for (const char* wrong : {"", "a/b", "a b", "..", "\xc3\xa9"}) {
    EXPECT_EQ(part_prefix(identity, {wrong, "e"}).code(), Code::kInvalidArgument) << wrong;
    EXPECT_EQ(part_prefix(identity, {"c", wrong}).code(), Code::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(part_prefix(identity, {"c", "e-1"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(part_prefix(identity, {std::string(kMaxPartNameBytes + 1, 'c'), "e"}).code(),
            Code::kInvalidArgument);
  identity.process_id = {};
  EXPECT_EQ(part_prefix(identity, {"c", "e"}).code(), Code::kUnsupported);
}

TEST(PartKeysTest, PrefixIsOfOnePart) {
  const storage::SessionIdentity identity = storage::test::test_identity();
  const PartName part{"lab-1", "e7"};
  const std::string prefix = *part_prefix(identity, part);
  constexpr char kId[] = "0102030405060708090a0b0c0d0e0f10";
  const uint32_t recording = identity.recording;
  EXPECT_TRUE(is_prefix_of(prefix, kId, recording, part));
  EXPECT_FALSE(is_prefix_of(prefix, kId, recording + 1, part));
  EXPECT_FALSE(is_prefix_of(prefix, "0102030405060708090a0b0c0d0e0f11", recording, part));
  EXPECT_FALSE(is_prefix_of(prefix, kId, recording, {"lab-1", "e8"}));
  EXPECT_FALSE(is_prefix_of(prefix, kId, recording, {"1", "e7"}));
  EXPECT_FALSE(is_prefix_of("v2" + prefix.substr(2), kId, recording, part));
}

}  // namespace
}  // namespace collect::upload
