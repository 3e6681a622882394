// What the commands for files share: work on several cores, texts that are made once, files in
// memory, and which threads are meant.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "daemon/ctl/dump/function_texts.h"
#include "storage/read/file_bytes.h"
#include "storage/read/gzip_file.h"
#include "storage/read/thread_breaks.h"
#include "storage/read/unnamed_file.h"
#include "storage/read/workers.h"
#include "storage/select/thread_choice.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// ---- work

TEST(Workers, NoMoreThanPiecesAndCores) {
  const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
  EXPECT_EQ(read::workers_for(0), 1u);
  EXPECT_EQ(read::workers_for(1), 1u);
  EXPECT_EQ(read::workers_for(SIZE_MAX), cores);
}

TEST(Workers, DoEachPieceOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{100}}) {
    std::vector<std::atomic<int>> done(count);
    std::vector<std::pair<size_t, size_t>> reports;
    const std::thread::id caller = std::this_thread::get_id();
    std::mutex mutex;
    std::map<std::thread::id, size_t> worker_of;
    read::share_work(
        count,
        [&](size_t piece, size_t all) {
          EXPECT_EQ(std::this_thread::get_id(), caller);
          reports.emplace_back(piece, all);
        },
        [&](size_t worker, size_t piece) {
          EXPECT_LT(worker, read::workers_for(count));
          ASSERT_LT(piece, count);
          const std::lock_guard lock(mutex);
          const auto [known, is_new] = worker_of.try_emplace(std::this_thread::get_id(), worker);
          EXPECT_EQ(known->second, worker) << "a thread is one worker, and no other is it";
          ++done[piece];
        });
    for (const auto& times : done) EXPECT_EQ(times, 1);
    ASSERT_GE(reports.size(), 2u);
    EXPECT_EQ(reports.front(), std::pair(size_t{0}, count));
    EXPECT_EQ(reports.back(), std::pair(count, count));
    for (size_t i = 1; i + 1 < reports.size(); ++i) EXPECT_LT(reports[i].first, count);
    if (count == 1) {
      EXPECT_THAT(reports, ElementsAre(Pair(0, 1), Pair(0, 1), Pair(1, 1)));
    }
  }
}

struct CountedText {
  std::string text;
  size_t bytes() const { return text.size(); }
};

TEST(FunctionTextsTest, AreMadeOnceWhereverTheyLie) {
  FunctionTexts<CountedText> texts;
  size_t made = 0;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t id = 0; id < 20'000; ++id) {
      const CountedText& text = texts.of(id, [&](uint64_t of) {
        ++made;
        return CountedText{"function " + std::to_string(of)};
      });
      ASSERT_EQ(text.text, "function " + std::to_string(id));
    }
  }
  EXPECT_EQ(made, 20'000u);
}

TEST(FunctionTextsTest, AreForgottenWhenThereAreTooMany) {
  FunctionTexts<CountedText> texts;
  size_t made = 0;
  const auto look = [&](uint64_t id) {
    const std::string expected(size_t{1} << 20, static_cast<char>('a' + id % 26));
    const CountedText& text = texts.of(id, [&](uint64_t) {
      ++made;
      return CountedText{expected};
    });
    EXPECT_TRUE(text.text == expected) << id;
  };
  // With what each entry takes beside its text, 16 are more than may be kept.
  for (uint64_t round = 0; round < 3; ++round) {
    made = 0;
    for (uint64_t id = 0; id < 16; ++id) look(100 * round + id);
    for (uint64_t id = 0; id < 16; ++id) look(100 * round + id);
    EXPECT_EQ(made, 16u) << "they are still there, round " << round;
    look(100 * round + 16);
    EXPECT_EQ(made, 17u);
    look(100 * round);
    EXPECT_EQ(made, 18u) << "all were forgotten";
    look(100 * round + 16);
    EXPECT_EQ(made, 18u);
    for (uint64_t id = 50; id < 64; ++id) look(100 * round + id);  // as many as before
  }
}

// ---- files in memory

class FilesInMemory : public testing::OfflineTest {
 protected:
  static std::vector<uint8_t> noise(size_t size) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 253);
    return bytes;
  }
  static bool same(Bytes a, const std::vector<uint8_t>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  static bool is_mapped(const std::string& path) {
    std::ostringstream maps;
    maps << std::ifstream("/proc/self/maps").rdbuf();
    return maps.str().find(path) != std::string::npos;
  }
  std::string put(const std::string& name, const std::vector<uint8_t>& bytes) {
    atf::testing::write_file(root_ / name, bytes);
    return (root_ / name).string();
  }
};

TEST_F(FilesInMemory, LargeOnesAreMappedAndSmallOnesCopied) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{read::kMaxCopiedBytes},
                            size_t{read::kMaxCopiedBytes + 1}, size_t{1'000'000}}) {
    const std::vector<uint8_t> bytes = noise(size);
    const std::string path = put("file" + std::to_string(size), bytes);
    {
      auto opened = read::FileBytes::open(path);
      ASSERT_TRUE(opened.ok());
      EXPECT_EQ(is_mapped(path), size > read::kMaxCopiedBytes);
      EXPECT_TRUE(same(opened->bytes(), bytes)) << size;
      opened->drop_pages();
      EXPECT_TRUE(same(opened->bytes(), bytes)) << size;
      EXPECT_EQ(opened->missing(), "");
      read::FileBytes moved = std::move(*opened);
      EXPECT_TRUE(same(moved.bytes(), bytes));
      read::FileBytes other;
      other = std::move(moved);
      EXPECT_TRUE(same(other.bytes(), bytes));
    }
    EXPECT_FALSE(is_mapped(path)) << "and it goes away";
  }
  EXPECT_EQ(read::FileBytes::open((root_ / "none").string()).code(), Code::kNotFound);
  EXPECT_FALSE(read::FileBytes::open(root_.string()).ok());
}

TEST_F(FilesInMemory, FileWithoutANameKeepsWhatIsWritten) {
  for (const size_t part :
       {size_t{1}, size_t{700'000}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{2'500'000}}) {
    auto made = read::UnnamedFile::create(root_.string());
    ASSERT_TRUE(made.ok());
    read::UnnamedFile file = std::move(*made);
    std::vector<uint8_t> expected;
    for (int i = 0; i < 4; ++i) {
      std::vector<uint8_t> bytes = noise(part + static_cast<size_t>(i));
      ASSERT_TRUE(file.write(bytes).ok());
      expected.insert(expected.end(), bytes.begin(), bytes.end());
    }
    ASSERT_TRUE(file.sync().ok());
    const auto bytes = file.bytes();
    ASSERT_TRUE(bytes.ok());
    EXPECT_TRUE(same(bytes->bytes(), expected)) << part;
    const auto free_bytes = file.free_bytes();
    ASSERT_TRUE(free_bytes.ok());
    EXPECT_GT(*free_bytes, 0u);
  }
  size_t names = 0;
  for (const auto& entry : testing::fs::directory_iterator(root_)) names += !entry.is_directory();
  EXPECT_EQ(names, 0u) << "it has no name";
  const auto nowhere = read::UnnamedFile::create((root_ / "none").string());
  EXPECT_EQ(nowhere.code(), Code::kNotFound);
  EXPECT_THAT(nowhere.error().message, HasSubstr((root_ / "none").string() + ": a temporary file"));
}

TEST(TemporaryDirectory, IsTheUsersOrTmp) {
  const char* const given = std::getenv("TMPDIR");
  const std::string before = given == nullptr ? "" : given;
  ::setenv("TMPDIR", "/", 1);
  EXPECT_EQ(read::temporary_directory(), "/");
  ::setenv("TMPDIR", "/no-such-directory", 1);
  EXPECT_EQ(read::temporary_directory(), "/tmp");
  ::unsetenv("TMPDIR");
  EXPECT_EQ(read::temporary_directory(), "/tmp");
  if (given != nullptr) ::setenv("TMPDIR", before.c_str(), 1);
}

TEST(InflateLimits, LeastHolds) {
  constexpr uint64_t kMuch = UINT64_MAX;
  const auto of = [](uint64_t packed, uint64_t free_bytes) {
    const read::InflateLimit limit = read::inflate_limit(packed, free_bytes, "/tmp");
    return std::to_string(limit.bytes) + ", " + limit.why;
  };
  EXPECT_EQ(of(0, kMuch), "268435456, much for so small a file");
  EXPECT_EQ(of(1'342'177, kMuch), "268435456, much for so small a file");
  EXPECT_EQ(of(1'342'178, kMuch), "268435600, 200 times its size");
  EXPECT_EQ(of(85'899'345, kMuch), "17179869000, 200 times its size");
  EXPECT_EQ(of(85'899'346, kMuch), "17179869184, the most that is unpacked on the way");
  EXPECT_EQ(of(kMuch, kMuch), "17179869184, the most that is unpacked on the way");
  EXPECT_EQ(of(0, 536'870'912), "268435456, much for so small a file");
  EXPECT_EQ(of(0, 536'870'910), "268435455, half of what is free in /tmp");
  EXPECT_EQ(of(kMuch, 2'000'001), "1000000, half of what is free in /tmp");
}

TEST(InflateLimits, GzipFileBeginsWithItsTwoBytes) {
  const auto looks = [](std::vector<uint8_t> head) { return read::looks_like_gzip(head); };
  EXPECT_TRUE(looks({0x1f, 0x8b}));
  EXPECT_TRUE(looks({0x1f, 0x8b, 8}));
  EXPECT_FALSE(looks({0x1f}));
  EXPECT_FALSE(looks({}));
  EXPECT_FALSE(looks({0x1f, 0x8c}));
  EXPECT_FALSE(looks({0x1e, 0x8b}));
}

// ---- threads and what breaks their calls

class ThreadsMeant : public testing::OfflineTest {
 protected:
  Result<std::vector<uint32_t>> chosen(const std::vector<std::string>& words) {
    const auto trace = read::open_trace(session_.string());
    EXPECT_TRUE(trace.ok());
    const auto manifest = read::SessionManifest::parse(*trace->manifest);
    EXPECT_TRUE(manifest.ok());
    return select::chosen_threads(words, *trace, *manifest);
  }
};

TEST_F(ThreadsMeant, ByNumberIdAndName) {
  for (const int n : {0, 3, 12}) {
    write_thread(n, testing::index_of({{1, testing::kCall, 1}}, 100 + static_cast<uint32_t>(n)));
  }
  write_thread(20, {'n', 'o'});
  write_text(session_ / "manifest.json",
             R"({"threads":[{"id":0,"name":"main"},{"id":3,"thread_id":777,"name":"worker 1"},
                 {"id":20,"thread_id":900,"name":"worker 2"}]})");
  const auto are = [&](const std::vector<std::string>& words) {
    const auto found = chosen(words);
    EXPECT_TRUE(found.ok()) << to_string(found.error());
    return found.ok() ? *found : std::vector<uint32_t>();
  };
  EXPECT_THAT(are({}), ElementsAre());
  EXPECT_THAT(are({"thread_3"}), ElementsAre(3));
  EXPECT_THAT(are({"100"}), ElementsAre(0)) << "as the index says";
  EXPECT_THAT(are({"777"}), ElementsAre(3)) << "as the manifest says";
  EXPECT_THAT(are({"112"}), ElementsAre(12)) << "that the manifest does not list";
  EXPECT_THAT(are({"900"}), ElementsAre(20)) << "whose index cannot be read";
  EXPECT_THAT(are({"name=main"}), ElementsAre(0));
  EXPECT_THAT(are({"name=worker*", "thread_0"}), ElementsAre(0, 3, 20));
  EXPECT_EQ(chosen({"103"}).code(), Code::kNotFound) << "the manifest has another id for it";
  EXPECT_EQ(chosen({"thread_0", "thread_5"}).code(), Code::kNotFound);
  EXPECT_EQ(chosen({"main"}).code(), Code::kInvalidArgument);
}

TEST(ThreadBreaks, SortsStallsOfOneAndOfAllThreads) {
  const auto manifest = read::SessionManifest::parse(R"({"threads":[],"stalls":[
      {"kind":"page_wait","thread":2,"first_ns":50,"last_ns":60,"stalled_ns":7,"joined":3},
      {"kind":"stopped","first_ns":40,"last_ns":45},
      {"kind":"suspended","first_ns":55,"last_ns":58},
      {"kind":"page_wait","thread":2,"first_ns":10,"last_ns":20},
      {"kind":"page_wait","thread":1,"first_ns":1,"last_ns":2},
      {"kind":"page_wait","thread":3,"first_ns":1,"last_ns":2}]})");
  ASSERT_TRUE(manifest.ok());
  const auto firsts = [&](uint32_t thread) {
    std::vector<uint64_t> found;
    for (const auto& stall : read::stalls_of(*manifest, thread)) found.push_back(stall.first_ns);
    return found;
  };
  EXPECT_THAT(firsts(2), ElementsAre(10, 40, 50, 55));
  EXPECT_THAT(firsts(1), ElementsAre(1, 40, 55));
  EXPECT_THAT(firsts(4), ElementsAre(40, 55));
  const auto calls = read::call_stalls_of(*manifest, 2);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[2].first_ns, 50u);
  EXPECT_EQ(calls[2].last_ns, 60u);
  EXPECT_EQ(calls[2].stalled_ns, 7u);
  EXPECT_EQ(calls[2].count, 3u);
  EXPECT_FALSE(calls[2].is_of_process);
  EXPECT_TRUE(calls[1].is_of_process);
}

}  // namespace
}  // namespace collect::ctl
