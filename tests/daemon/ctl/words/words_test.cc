// Every word that the commands for files print, on standard output and standard error: expected/
// has a text for each test. The texts were read line by line against what the inputs hold
// (inputs.cc); COLLECT_WRITE_WORDS=1 writes them again.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/daemon/ctl/words/words_fixture.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using testing::change_manifest;
using testing::Octets;
using testing::WordsTest;

Octets part_of(const Octets& bytes, size_t from, size_t to) {
  return {bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(to)};
}

// ---- sessions

TEST_F(WordsTest, SessionOutputMatchesCommittedText) {
  link("session", testing::small_session(root_ / "s", atf::Version::kV2));
  EXPECT_EQ(run("inspect session"), 0);
  EXPECT_EQ(run("inspect --json session"), 0);
  EXPECT_EQ(run("verify session"), 0);
  EXPECT_EQ(run("verify --json session"), 0);
  run("verify --strict session");
  EXPECT_EQ(run("dump session"), 0);
  EXPECT_EQ(run("dump --json --detail session"), 0);
  EXPECT_EQ(run("dump --detail --thread 101 session"), 0);
  EXPECT_EQ(run("dump --merged --from 2000 --until 2600 session"), 0);
  EXPECT_EQ(run("dump --function draw --function prase --limit 20 session"), 1);
  EXPECT_EQ(run("recover session"), 0);
  EXPECT_EQ(run("recover --json session"), 0);
  EXPECT_EQ(run("inspect session/thread_0"), 0);
  EXPECT_EQ(run("inspect session/thread_1/index.atf"), 0);
  EXPECT_EQ(run("recover session/thread_0"), 2);
  expect_words("session");
}

TEST_F(WordsTest, ReportsMatchCommittedText) {
  link("session", testing::small_session(root_ / "s", atf::Version::kV2));
  link("other", testing::other_session(root_ / "o"));
  EXPECT_EQ(run("report session"), 0);
  EXPECT_EQ(run("report --json session"), 0);
  for (const char* by : {"caller", "module", "thread"}) {
    EXPECT_EQ(run(std::string("report --by ") + by + " session"), 0);
    EXPECT_EQ(run(std::string("report --json --by ") + by + " session"), 0);
  }
  EXPECT_EQ(run("report --percentiles --sort self session"), 0);
  EXPECT_EQ(run("report --sort name --limit 1 --thread 102 session"), 0);
  EXPECT_EQ(run("report --sort calls --from 2000 --until 3200 session"), 0);
  EXPECT_EQ(run("report --graph draw session"), 0);
  EXPECT_EQ(run("report --json --graph draw session"), 0);
  EXPECT_EQ(run("report --graph prase session"), 1);
  EXPECT_EQ(run("report --diff other session"), 0);
  EXPECT_EQ(run("report --json --diff other session"), 0);
  EXPECT_EQ(run("report --by thread --diff other session"), 0);
  expect_words("report");
}

TEST_F(WordsTest, ConversionOutputMatchesCommittedText) {
  link("session", testing::small_session(root_ / "s", atf::Version::kV2));
  EXPECT_EQ(run("convert --to rtc -o a.rtc session"), 0);
  EXPECT_EQ(run("convert --to rtc -o a.rtc session"), 2);
  EXPECT_EQ(run("convert --json --force --to rtc -o a.rtc session"), 0);
  EXPECT_EQ(run("convert --to dial9 -o a.bin session"), 0);
  EXPECT_EQ(run("convert --json --strict --force --to dial9 -o a.bin session"), 1);
  EXPECT_EQ(run("convert --to wtf -o a.wtf-trace session"), 0);
  EXPECT_EQ(run("convert --json --to wtf-json -o a.wtf-json session"), 0);
  EXPECT_EQ(run("convert --json --to atf --atf-version 1 -o one session"), 0);
  EXPECT_EQ(run("convert --to atf -o same session"), 0);
  EXPECT_EQ(run("convert --to folded -o a.folded session"), 0);
  EXPECT_EQ(run("convert --to folded --function prase -o b.folded session"), 1);
  // Several captures of one time line; containers alone are parts of one session.
  link("other", testing::other_session(root_ / "o"));
  EXPECT_EQ(run("convert --to folded -o two.folded session other"), 0);
  EXPECT_EQ(run("convert --to folded -o three.folded a.rtc a.rtc"), 0);
  EXPECT_EQ(run("convert --to rtc -o two.rtc session other"), 2);
  EXPECT_EQ(run("convert --to rtc -o none/a.rtc session"), 2);
  EXPECT_EQ(run("convert --to rtc -o b.rtc nothing"), 2);
  // And back.
  EXPECT_EQ(run("convert --json --to atf -o back a.rtc"), 0);
  EXPECT_EQ(run("convert --json --to atf -o back a.bin"), 0);
  EXPECT_EQ(run("convert --json --to atf -o back a.wtf-trace"), 0);
  EXPECT_EQ(run("convert --json --to wtf -o b.wtf-trace a.wtf-json"), 0);
  EXPECT_EQ(run("convert --json --to rtc -o c.rtc a.wtf-trace"), 0);
  EXPECT_EQ(run("dump a.bin"), 0);
  EXPECT_EQ(run("dump a.wtf-trace"), 0);
  EXPECT_EQ(octets("a.wtf-trace"), octets("b.wtf-trace"));
  expect_words("convert");
}

// A byte of an event is another one, a file is cut, a thread and a module file are not there, and
// the manifest counts more than there is.
TEST_F(WordsTest, DamagedSessionOutputMatchesCommittedText) {
  const fs::path session = testing::small_session(root_ / "s", atf::Version::kV2);
  link("session", session);
  Octets index = octets("session/thread_0/index.atf");
  index[70] ^= 0xFF;
  put("session/thread_0/index.atf", index);
  const Octets detail = octets("session/thread_1/detail.atf");
  put("session/thread_1/detail.atf", part_of(detail, 0, detail.size() - 100));
  fs::remove_all(session / "thread_2");
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.threads[1].events = 9;
    manifest.state = storage::SessionState::kRecovered;
    manifest.reason = "cut off";
  });
  run("inspect session");
  run("inspect --json session");
  run("verify session");
  run("verify --json session");
  run("verify --strict --allow-incomplete session");
  run("dump session");
  run("report session");
  run("convert --to dial9 -o a.bin session");
  run("convert --json --to rtc -o a.rtc session");
  run("convert --json --to atf -o copy session");
  run("recover session");
  fs::remove(session / "manifest.json");
  run("verify session");
  run("inspect session");
  run("convert --json --to dial9 -o b.bin session");
  put("session/manifest.json", {'{', '"'});
  run("verify session");
  run("convert --json --to dial9 -o c.bin session");
  expect_words("session_damaged");
}

TEST_F(WordsTest, RejectionsOfOtherPathsMatchCommittedText) {
  put("empty", {});
  put("text", {'h', 'e', 'l', 'l', 'o', 1});
  fs::create_directory(root_ / "folder");
  for (const char* name : {"empty", "text", "folder", "nothing"}) {
    for (const std::string command : {"inspect", "inspect --json", "verify", "dump", "report",
                                      "recover -o x", "convert --to rtc -o x"}) {
      run(command + " " + name);
    }
  }
  expect_words("no_capture");
}

// ---- dial9

TEST_F(WordsTest, Dial9OutputMatchesCommittedText) {
  put("x.bin", testing::dial9_of_everything());
  EXPECT_EQ(run("inspect x.bin"), 0);
  EXPECT_EQ(run("inspect --json x.bin"), 0);
  EXPECT_EQ(run("verify x.bin"), 0);
  EXPECT_EQ(run("verify --json x.bin"), 0);
  run("verify --strict x.bin");
  EXPECT_EQ(run("dump x.bin"), 0);
  EXPECT_EQ(run("dump --json --from 5000001000 --until 5600000000 x.bin"), 0);
  EXPECT_EQ(run("dump --function Extra1 --function Nothing x.bin"), 1);
  EXPECT_EQ(run("dump --function Extra2 --limit 2 x.bin"), 0);
  EXPECT_EQ(run("dump --json --function Timeless --function Extra0 x.bin"), 0);
  EXPECT_EQ(run("dump --json --limit 1 x.bin"), 0);
  EXPECT_EQ(run("dump --merged x.bin"), 2);
  EXPECT_EQ(run("report x.bin"), 2);
  EXPECT_EQ(run("recover x.bin"), 2);
  EXPECT_EQ(run("recover -o y.bin x.bin"), 0);
  EXPECT_EQ(run("recover --json -o y.bin --force x.bin"), 0);
  EXPECT_EQ(run("convert --json --to dial9 -o z.bin x.bin"), 0);
  EXPECT_EQ(run("convert --json --to atf -o none x.bin"), 0);
  EXPECT_EQ(octets("y.bin"), octets("x.bin"));
  EXPECT_EQ(octets("z.bin"), octets("x.bin"));
  expect_words("dial9");
}

TEST_F(WordsTest, DamagedDial9OutputMatchesCommittedText) {
  const Octets whole = testing::dial9_of_everything();
  put("cut.bin", part_of(whole, 0, whole.size() - 1));
  Octets damaged = whole;
  damaged[damaged.size() - 7] = 0x77;  // the tag of the last frame
  put("damaged.bin", damaged);
  Octets within = whole;
  // The first frame behind the header has a tag that none has: all of it, another header too, is
  // what is not read.
  within[5] = 0x77;
  put("front.bin", within);
  put("version.bin", {'T', 'R', 'C', 0, 9});
  for (const char* name : {"cut.bin", "damaged.bin", "front.bin", "version.bin"}) {
    const std::string path = name;
    run("inspect " + path);
    run("inspect --json " + path);
    run("verify --json " + path);
    run("verify --allow-incomplete " + path);
    run("dump --from 7000000908 " + path);
    run("recover --force -o y.bin " + path);
    run("convert --json --force --to dial9 -o z.bin " + path);
    run("convert --force --to rtc -o z.rtc " + path);
  }
  expect_words("dial9_damaged");
}

TEST_F(WordsTest, Dial9ServiceOutputMatchesCommittedText) {
  put("x.bin", testing::dial9_of_workers());
  EXPECT_EQ(run("inspect x.bin"), 0);
  EXPECT_EQ(run("dump x.bin"), 0);
  EXPECT_EQ(run("convert --json --to atf -o s x.bin"), 0);
  EXPECT_EQ(run("convert --to wtf -o x.wtf-trace x.bin"), 0);
  EXPECT_EQ(run("verify s"), 0);
  EXPECT_EQ(run("dump s"), 0);
  EXPECT_EQ(run("report s"), 0);
  expect_words("dial9_service");
}

// ---- RTC

TEST_F(WordsTest, RtcOutputMatchesCommittedText) {
  put("x.rtc", testing::rtc_of_everything());
  EXPECT_EQ(run("inspect x.rtc"), 0);
  EXPECT_EQ(run("inspect --json x.rtc"), 0);
  EXPECT_EQ(run("verify x.rtc"), 0);
  EXPECT_EQ(run("verify --json --strict x.rtc"), 0);
  run("dump x.rtc");
  run("dump --json --until 2000000001 x.rtc");
  run("dump --from 3250000000 --limit 3 x.rtc");
  EXPECT_EQ(run("dump --function f x.rtc"), 2);
  EXPECT_EQ(run("recover -o y.rtc x.rtc"), 0);
  EXPECT_EQ(run("convert --json --to rtc -o z.rtc x.rtc"), 0);
  EXPECT_EQ(run("convert --to atf -o none x.rtc"), 2);
  put("timeless.rtc", testing::rtc_without_clock());
  EXPECT_EQ(run("inspect timeless.rtc"), 0);
  EXPECT_EQ(run("inspect --json timeless.rtc"), 0);
  EXPECT_EQ(run("dump timeless.rtc"), 0);
  expect_words("rtc");
}

TEST_F(WordsTest, DamagedRtcOutputMatchesCommittedText) {
  const Octets whole = testing::rtc_of_everything();
  put("cut.rtc", part_of(whole, 0, whole.size() - 700));
  put("tail.rtc", part_of(whole, 100, whole.size()));
  Octets damaged = whole;
  for (size_t i = 4500; i < 4540; ++i) damaged[i] ^= 0x33;
  put("damaged.rtc", damaged);
  for (const char* name : {"cut.rtc", "tail.rtc", "damaged.rtc"}) {
    const std::string path = name;
    run("inspect " + path);
    run("verify " + path);
    run("verify --json --allow-incomplete " + path);
    run("dump " + path);
    run("recover --force -o y.rtc " + path);
    run("convert --json --force --to rtc -o z.rtc " + path);
  }
  // As many bytes in front as at the end; as many in front as are skipped.
  put("ends.rtc", part_of(whole, 4096 - 217, whole.size() - 700));
  EXPECT_EQ(run("inspect ends.rtc"), 0);
  Octets within = whole;
  for (size_t i = 6000; i < 7200; ++i) within[i] ^= 0x33;
  put("within.rtc", within);
  EXPECT_EQ(run("inspect --json within.rtc"), 0);
  const uint64_t skipped = nlohmann::json::parse(said())["skipped_bytes"];
  put("front.rtc", part_of(within, 4096 - skipped, within.size()));
  EXPECT_EQ(run("inspect front.rtc"), 0);
  expect_words("rtc_damaged");
}

// ---- WTF-trace

TEST_F(WordsTest, WtfOutputMatchesCommittedText) {
  put("x.wtf-trace", testing::wtf_of_everything());
  EXPECT_EQ(run("inspect x.wtf-trace"), 0);
  EXPECT_EQ(run("inspect --json x.wtf-trace"), 0);
  run("verify x.wtf-trace");
  run("verify --json x.wtf-trace");
  run("verify --strict x.wtf-trace");
  EXPECT_EQ(run("dump x.wtf-trace"), 0);
  EXPECT_EQ(run("dump --json x.wtf-trace"), 0);
  EXPECT_EQ(run("dump --function draw --function nothing x.wtf-trace"), 1);
  EXPECT_EQ(run("dump --thread 1 x.wtf-trace"), 2);
  run("recover -o y.wtf-trace x.wtf-trace");
  run("convert --json --to atf -o s x.wtf-trace");
  run("convert --json --to wtf-json -o x.wtf-json x.wtf-trace");
  run("inspect x.wtf-json");
  run("recover --json -o y.wtf-json x.wtf-json");
  put("zones.wtf-trace", testing::wtf_of_zones(66));
  EXPECT_EQ(run("inspect zones.wtf-trace"), 0);
  expect_words("wtf");
}

TEST_F(WordsTest, DamagedWtfOutputMatchesCommittedText) {
  const Octets whole = testing::wtf_of_everything();
  put("cut.wtf-trace", part_of(whole, 0, whole.size() - 9));
  Octets damaged = whole;
  damaged[whole.size() / 2] ^= 0xFF;
  put("damaged.wtf-trace", damaged);
  put("head.wtf-trace", part_of(whole, 0, 12));
  for (const char* name : {"cut.wtf-trace", "damaged.wtf-trace", "head.wtf-trace"}) {
    const std::string path = name;
    run("inspect " + path);
    run("verify " + path);
    run("verify --json --allow-incomplete " + path);
    run("dump --from 1700000000 --until 1701000000 " + path);
    run("recover --force -o y.wtf-trace " + path);
    run("convert --json --force --to wtf -o z.wtf-trace " + path);
    // Without a header it is not known when it was, and the session has the name of today.
    if (path != "head.wtf-trace") run("convert --json --to atf -o s " + path);
  }
  expect_words("wtf_damaged");
}

}  // namespace
}  // namespace collect::ctl
