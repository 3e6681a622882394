// What `dump` prints of sessions of many blocks: every line is compared with one made here, event
// after event, without blocks.
#include <gtest/gtest.h>

#include <cinttypes>
#include <random>

#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/dump/dump_blocks.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using testing::index_of;
using testing::kCall;
using testing::kReturn;
using testing::Step;

constexpr const char* kNames[] = {"main", "parse(char*)", "a \\\"quoted\\\" name", "leaf"};

std::string micros(int64_t ns, int width) {
  char text[64];
  std::snprintf(text, sizeof text, "%*" PRId64 ".%03" PRId64, width - 4, ns / 1000, ns % 1000);
  return text;
}

// A random walk up and down the stack.
std::vector<Step> walk(size_t events, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Step> steps;
  std::vector<uint64_t> open;
  uint64_t ns = 1000 * seed;
  for (size_t i = 0; i < events; ++i) {
    ns += 1 + random() % 3000;
    if (open.empty() || (open.size() < 30 && random() % 2 == 0)) {
      open.push_back(0x100 + random() % std::size(kNames));
      steps.push_back({ns, kCall, open.back()});
    } else {
      steps.push_back({ns, kReturn, open.back()});
      open.pop_back();
    }
  }
  return steps;
}

// How far a dump is, of a session of so many events in two threads; none of them is printed.
class DumpProgressTest : public testing::OfflineTest {
 protected:
  static constexpr size_t kMany = size_t{1} << 20;

  void write_session(size_t events) {
    write_thread(0, index_of(walk(events - 1000, 1), 4711));
    write_thread(1, index_of(walk(1000, 2), 4712));
  }
  std::vector<std::pair<uint64_t, uint64_t>> reported(DumpOptions options) {
    options.functions = {"0x999"};
    auto trace = read::open_trace(session_.string());
    EXPECT_TRUE(trace.ok());
    std::vector<std::unique_ptr<DumpedSession>> sessions;
    sessions.push_back(std::make_unique<DumpedSession>(std::move(*trace), read::SessionManifest(),
                                                       std::vector<uint32_t>{}));
    sessions[0]->filter = *select::FunctionFilter::make(options.functions, sessions[0]->names);
    std::vector<std::pair<uint64_t, uint64_t>> reported;
    EXPECT_TRUE(dump_events(options, sessions, out_, [&](uint64_t done, uint64_t all) {
      reported.emplace_back(done, all);
    }));
    return reported;
  }
};

TEST_F(DumpProgressTest, ReportsEachBlockAndTheEnd) {
  write_session(kMany);
  for (const bool merged : {false, true}) {
    DumpOptions options;
    options.json = !merged;
    options.merged = merged;
    const auto steps = reported(options);
    ASSERT_GE(steps.size(), kMany / DumpBlock::kEvents);
    uint64_t before = 0;
    for (const auto& [done, all] : steps) {
      EXPECT_EQ(all, kMany);
      EXPECT_GE(done, before);
      EXPECT_LE(done, before + DumpBlock::kEvents);
      before = done;
    }
    EXPECT_EQ(before, kMany);
    EXPECT_LT(steps[steps.size() - 2].first, kMany) << "the end is reported once";
  }
}

TEST_F(DumpProgressTest, ReportsNothingForAShortOne) {
  write_session(kMany - 1);
  EXPECT_TRUE(reported({}).empty());
}

TEST_F(DumpProgressTest, RemovesItsLineFromATerminal) {
  write_session(kMany);
  const std::string restart = "\r\x1b[K";
  DumpOptions options;
  options.paths = {session_.string()};
  options.limit = 1;
  options.progress = true;
  EXPECT_EQ(dump(options, out_, err_), 0);
  const std::string line = restart + "printing 0 %";
  EXPECT_EQ(err_.str().substr(0, line.size()), line);
  EXPECT_EQ(err_.str().substr(err_.str().size() - restart.size()), restart);
  err_.str("");
  options.progress = false;
  EXPECT_EQ(dump(options, out_, err_), 0);
  EXPECT_EQ(err_.str(), "");
}

class DumpBlocksTest : public testing::OfflineTest {
 protected:
  static constexpr size_t kEvents = 5 * DumpBlock::kEvents + 77;

  void SetUp() override {
    OfflineTest::SetUp();
    options_.paths = {session_.string()};
    write_manifest("");
    for (int n = 0; n < 2; ++n) {
      threads_.push_back(walk(n == 0 ? kEvents : 300, static_cast<uint32_t>(n + 1)));
      write_thread(n, index_of(threads_.back(), static_cast<uint32_t>(4711 + n)));
    }
  }

  void write_manifest(const std::string& stalls) {
    std::string symbols;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      symbols += std::string(i == 0 ? "" : ",") + "{\"function_id\":\"" + "0x10" +
                 std::to_string(i) + "\",\"name\":\"" + kNames[i] + "\"}";
    }
    write_text(session_ / "manifest.json", "{\"threads\":[{\"id\":0},{\"id\":1}],\"symbols\":[" +
                                               symbols + "],\"stalls\":[" + stalls + "]}");
  }

  std::string run(int code = 0) {
    out_.str("");
    err_.str("");
    EXPECT_EQ(dump(options_, out_, err_), code) << err_.str();
    return out_.str();
  }

  static std::string json_line(size_t thread, size_t seq, const Step& step) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "{\"version\":1,\"thread\":%zu,\"tid\":%zu,\"seq\":%zu,\"ts_ns\":%" PRIu64
                  ",\"kind\":\"%s\",\"function_id\":\"0x%" PRIx64 "\",\"name\":\"%s\"}\n",
                  thread, 4711 + thread, seq, step.ns, step.kind == kCall ? "call" : "return",
                  step.function_id, kNames[step.function_id - 0x100]);
    return text;
  }
  std::string json_lines(size_t limit = SIZE_MAX) const {
    std::string lines;
    for (size_t thread = 0; thread < threads_.size(); ++thread) {
      for (size_t i = 0; i < threads_[thread].size() && limit != 0; ++i, --limit) {
        lines += json_line(thread, i, threads_[thread][i]);
      }
    }
    return lines;
  }

  std::vector<std::vector<Step>> threads_;
  DumpOptions options_;
};

TEST_F(DumpBlocksTest, JsonIsThatOfEachEvent) {
  options_.json = true;
  EXPECT_TRUE(run() == json_lines());
}

TEST_F(DumpBlocksTest, TextIsThatOfEachEvent) {
  const uint64_t origin = std::min(threads_[0][0].ns, threads_[1][0].ns);
  std::string expected =
      "# microseconds since " + std::to_string(origin) + " ns; duration at each return\n";
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    expected += "# thread " + std::to_string(thread) + ", tid " + std::to_string(4711 + thread) +
                ", " + std::to_string(threads_[thread].size()) + " events\n";
    std::vector<uint64_t> open;
    for (const Step& step : threads_[thread]) {
      std::string name = kNames[step.function_id - 0x100];
      std::erase(name, '\\');
      std::string duration(12, ' ');
      if (step.kind == kReturn) {
        duration = micros(static_cast<int64_t>(step.ns - open.back()), 12);
        open.pop_back();
      }
      expected += micros(static_cast<int64_t>(step.ns - origin), 14) + duration + " | " +
                  std::string(2 * open.size(), ' ');
      if (step.kind == kCall) {
        expected += name + (name.find('(') == std::string::npos ? "() {\n" : " {\n");
        open.push_back(step.ns);
      } else {
        expected += "} " + name + "\n";
      }
    }
  }
  EXPECT_TRUE(run() == expected);
}

TEST_F(DumpBlocksTest, MergedIsInOrderOfTime) {
  options_.json = options_.merged = true;
  std::vector<std::pair<uint64_t, std::string>> lines;
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    for (size_t i = 0; i < threads_[thread].size(); ++i) {
      lines.emplace_back(threads_[thread][i].ns, json_line(thread, i, threads_[thread][i]));
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string expected;
  for (const auto& line : lines) expected += line.second;
  EXPECT_TRUE(run() == expected);
}

TEST_F(DumpBlocksTest, LimitsAtEveryPlaceOfABlock) {
  options_.json = true;
  const std::string all = json_lines();
  for (const size_t limit : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{127},
                             size_t{128}, size_t{4000}, DumpBlock::kEvents, size_t{9000},
                             kEvents - 1, kEvents, kEvents + 1, kEvents + 299, kEvents + 300}) {
    options_.limit = limit;
    EXPECT_TRUE(run() == json_lines(limit)) << limit;
  }
}

TEST_F(DumpBlocksTest, FilterHoldsInEveryBlock) {
  options_.json = true;
  options_.functions = {"leaf", "prase"};
  std::string expected;
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    for (size_t i = 0; i < threads_[thread].size(); ++i) {
      const Step& step = threads_[thread][i];
      if (step.function_id == 0x103) expected += json_line(thread, i, step);
    }
  }
  EXPECT_TRUE(run(1) == expected);
  EXPECT_EQ(err_.str(), "collectctl: no function matches \"prase\"; did you mean parse?\n");
}

TEST_F(DumpBlocksTest, StallsStandBeforeTheFirstEventBehindThem) {
  // Around the seams of blocks, and behind the last event.
  const std::vector<Step>& steps = threads_[0];
  std::string stalls;
  std::vector<uint64_t> begins;
  for (const size_t at :
       {size_t{63}, size_t{64}, size_t{192}, 2 * DumpBlock::kEvents, kEvents - 1}) {
    begins.push_back(steps[at].ns);
    stalls += std::string(stalls.empty() ? "" : ",") +
              R"({"kind":"page_wait","thread":0,"first_ns":)" + std::to_string(steps[at].ns) +
              R"(,"last_ns":)" + std::to_string(steps[at].ns + 10) + "}";
  }
  write_manifest(stalls);
  testing::fs::remove_all(session_ / "thread_1");
  options_.json = true;
  std::string expected;
  size_t next = 0;
  const auto put_stall = [&] {
    const std::string first = std::to_string(begins[next]);
    expected += R"({"version":1,"thread":0,"tid":4711,"ts_ns":)" + first +
                R"(,"kind":"stall","stall":"page_wait","last_ns":)" +
                std::to_string(begins[next] + 10) + R"(,"stalled_ns":10,"joined":1})" + "\n";
    ++next;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (next < begins.size() && begins[next] < steps[i].ns) put_stall();
    expected += json_line(0, i, steps[i]);
  }
  put_stall();
  EXPECT_EQ(next, begins.size());
  EXPECT_TRUE(run() == expected);
}

// A record whose digits do not fit into a block's memory, and many that do not fit together.
TEST_F(DumpBlocksTest, RecordsOfAnySize) {
  atf::testing::ThreadPlan plan;
  plan.events = 2000;
  plan.detail_every = 1;
  auto made = build_thread(plan);
  std::vector<uint8_t> records;
  std::vector<std::string> digits;
  for (size_t i = 0; i < plan.events; ++i) {
    const std::vector<uint8_t> payload(i == 70 ? 3 << 20 : i % 5000, static_cast<uint8_t>(i));
    atf::DetailRecord record;
    record.type = static_cast<atf::DetailType>(9);
    record.index_seq = i;
    record.timestamp_ns = plan.start_ns + i * plan.step_ns;
    record.payload = payload;
    std::vector<uint8_t> bytes(atf::kDetailHeaderBytes + payload.size());
    encode_detail_record(plan.version, record, bytes);
    atf::testing::append(records, bytes);
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>(i & 0xFF));
    std::string& text = digits.emplace_back();
    for (size_t k = 0; k < payload.size(); ++k) text += pair;
  }
  made.detail.resize(atf::kHeaderBytes);
  atf::DetailFileHeader header{plan.version, atf::Arch::kX86_64, atf::Os::kLinux};
  header.thread_id = plan.thread_id;
  encode_detail_header(header, std::span<uint8_t, atf::kHeaderBytes>(made.detail));
  atf::testing::append(made.detail, records);
  testing::fs::remove_all(session_ / "thread_1");
  write_thread(0, made.index, made.detail);
  options_.json = options_.detail = true;
  std::istringstream lines(run());
  std::string line;
  for (size_t i = 0; i < plan.events; ++i) {
    ASSERT_TRUE(std::getline(lines, line)) << i;
    const std::string end =
        ",\"detail_seq\":" + std::to_string(i) + ",\"detail\":{\"payload\":\"" + digits[i] + "\"}}";
    ASSERT_TRUE(line.ends_with(end)) << i;
    ASSERT_TRUE(line.starts_with(
        "{\"version\":1,\"thread\":0,\"tid\":4711,\"seq\":" + std::to_string(i) + ","))
        << i;
  }
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace collect::ctl
