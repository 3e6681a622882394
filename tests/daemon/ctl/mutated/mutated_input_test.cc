// Nearly right captures through every command that reads files. For any content: a documented
// exit code, no signal, no hang, bounded memory and output, nothing on the terminal that moves its
// cursor, JSON that parses.
//
//   COLLECT_MUTATIONS=100000  inputs for each format and group of commands (500)
//   COLLECT_MUTATION_SEED=7   another run of them; what is printed of a failure repeats it
//   COLLECT_MUTATION=4711     this input alone
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/report/report.h"
#include "formats/core/crc32.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/page_codec.h"
#include "storage/thread/record_scan.h"
#include "tests/daemon/ctl/mutated/bounded_child.h"
#include "tests/daemon/ctl/mutated/mutation.h"
#include "tests/formats/core/terminal_safe.h"

namespace collect::ctl::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFailures = 10;
constexpr size_t kMaxOutputBytes = size_t{64} << 20;

enum class Group : uint8_t { kInspect, kVerify, kDump, kReport, kConvert, kRecover };
constexpr const char* kGroupNames[] = {"inspect", "verify", "dump", "report", "convert", "recover"};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// What is wrong with what a command printed; empty when nothing is.
std::string wrong_output(const std::string& out, const std::string& err, bool json) {
  if (out.size() + err.size() > kMaxOutputBytes) return "it printed too much";
  for (const std::string* text : {&out, &err}) {
    const std::string raw = collect::testing::raw_character(*text);
    if (!raw.empty()) return "raw on the terminal: " + raw;
  }
  if (!json) return "";
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (!nlohmann::json::accept(line)) return "no JSON: " + line.substr(0, 300);
  }
  return "";
}

class Commands {
 public:
  Commands(Group group, fs::path directory) : group_(group), directory_(std::move(directory)) {}

  // Empty, or what was wrong.
  std::string run(const Capture& capture, std::mt19937_64& random) {
    const bool json = random() % 2 == 0;
    std::ostringstream out, err;
    const int code = command(laid_out(capture), json, random, out, err);
    if (code < 0 || code > 2) return "exit code " + std::to_string(code);
    return wrong_output(out.str(), err.str(), json);
  }
  std::string said(const Capture& capture, std::mt19937_64& random) {
    std::ostringstream out, err;
    command(laid_out(capture), true, random, out, err);
    return out.str() + err.str();
  }

 private:
  // The path to give a command.
  std::string laid_out(const Capture& capture) {
    fs::remove_all(directory_);
    const fs::path session = directory_ / "session_20260131_235959" / "pid_42";
    for (const auto& [name, bytes] : capture.files) {
      const fs::path path = session / name;
      fs::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    const bool is_file = capture.files.contains(kSingleFile);
    return is_file ? (session / kSingleFile).string() : session.string();
  }
  int command(const std::string& path, bool json, std::mt19937_64& random, std::ostream& out,
              std::ostream& err) {
    switch (group_) {
      case Group::kInspect: {
        InspectOptions options;
        options.path = path;
        options.json = json;
        return inspect(options, out, err);
      }
      case Group::kVerify: {
        VerifyOptions options;
        options.path = path;
        options.json = json;
        options.strict = random() % 2 == 0;
        return verify(options, out, err);
      }
      case Group::kDump: {
        DumpOptions options;
        options.paths = {path};
        options.json = json;
        options.merged = random() % 2 == 0;
        options.detail = random() % 2 == 0;
        if (random() % 4 == 0) options.functions = {"f*"};
        return dump(options, out, err);
      }
      case Group::kReport: {
        ReportOptions options;
        options.path = path;
        options.json = json;
        return report(options, out, err);
      }
      case Group::kConvert: {
        ConvertOptions options;
        options.inputs = {path};
        options.to = static_cast<exports::Target>(random() % 5);
        options.output = (directory_ / "made").string();
        options.json = json;
        options.atf_version = random() % 2 == 0 ? 1 : 2;
        return convert(options, out, err);
      }
      case Group::kRecover: {
        RecoverOptions options;
        options.path = path;
        options.output = (directory_ / "whole").string();
        options.json = json;
        return recover(options, out, err);
      }
    }
    return -1;
  }

  const Group group_;
  const fs::path directory_;
};

// What ingest does with a page before anything is stored.
std::string take_page(const Octets& bytes) {
  wire::Frame frame;
  const wire::Decoded decoded = wire::decode_frame(bytes, frame_crc, frame);
  if (decoded.status != wire::DecodeStatus::kFrame) return "";
  if (frame.frame_bytes > bytes.size()) return "a frame that is longer than what came";
  if (frame.type != wire::FrameType::kPage) return "";
  Octets records(frame.page_bytes.begin(), frame.page_bytes.end());
  const auto lane = frame.page.lane;
  if (frame.page.codec != Codec::kRaw) {
    if (frame.page.raw_bytes > wire::kMaxPageBytes) return "a page over the limit was taken";
    Octets scratch(frame.page.raw_bytes);
    records.resize(frame.page.raw_bytes);
    if (wire::decode_columns(lane, frame.page.record_count, frame.page_bytes, scratch, records) !=
        wire::PageCodecError::kNone) {
      return "";
    }
  }
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    storage::LaneSummary summary;
    scan_lane(lane == Lane::kIndex ? Lane::kIndex : Lane::kDetail, {version, 4711}, records,
              frame.page.record_count, summary);
    if (summary.bytes > records.size()) return "records beyond the page's end";
  }
  return "";
}

class MutatedInput : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where that is possible: nothing here is about disks.
    for (const fs::path& where : {fs::path("/dev/shm"), fs::path(::testing::TempDir())}) {
      std::string name = (where / "mutated_XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) continue;
      scratch_ = name;
      break;
    }
    ASSERT_FALSE(scratch_.empty());
  }
  void TearDown() override {
    if (!scratch_.empty()) fs::remove_all(scratch_);
  }

  void expect_no_failure(Kind kind, const std::string& group,
                         const std::function<std::string(uint64_t, Mutator&)>& run) {
    const uint64_t seed = setting("COLLECT_MUTATION_SEED", 1);
    const uint64_t only = setting("COLLECT_MUTATION", UINT64_MAX);
    const uint64_t first = only == UINT64_MAX ? 0 : only;
    const uint64_t end = only == UINT64_MAX ? setting("COLLECT_MUTATIONS", 500) : only + 1;
    Mutator mutator(kind, captures_of(kind, (scratch_ / "captures").string()), seed);
    const auto failures = run_bounded(first, end, Bounds{}, kMostFailures,
                                      [&](uint64_t number) { return run(number, mutator); });
    std::printf("%s %s: %llu inputs of seed %llu, %zu failures\n", kind_name(kind), group.c_str(),
                static_cast<unsigned long long>(end - first), static_cast<unsigned long long>(seed),
                failures.size());
    for (const Failure& failure : failures) {
      ADD_FAILURE() << kind_name(kind) << " " << group << ", COLLECT_MUTATION_SEED=" << seed
                    << " COLLECT_MUTATION=" << failure.number << ": " << failure.what;
    }
  }

  fs::path scratch_;
};

class MutatedFile : public MutatedInput,
                    public ::testing::WithParamInterface<std::tuple<Kind, Group>> {};

TEST_P(MutatedFile, IsReadOrRefused) {
  const auto [kind, group] = GetParam();
  Commands commands(group, scratch_ / "input");
  expect_no_failure(kind, kGroupNames[static_cast<size_t>(group)],
                    [&commands](uint64_t number, Mutator& mutator) {
                      const Capture capture = mutator.mutation(number);
                      return commands.run(capture, mutator.random());
                    });
}

INSTANTIATE_TEST_SUITE_P(
    Offline, MutatedFile,
    ::testing::Combine(::testing::Values(Kind::kAtf1, Kind::kAtf2, Kind::kRtc, Kind::kWtf,
                                         Kind::kWtfJson, Kind::kDial9),
                       ::testing::Values(Group::kInspect, Group::kVerify, Group::kDump,
                                         Group::kReport, Group::kConvert, Group::kRecover)),
    [](const auto& parameters) {
      return std::string(kind_name(std::get<0>(parameters.param))) + "_" +
             kGroupNames[static_cast<size_t>(std::get<1>(parameters.param))];
    });

TEST_F(MutatedInput, PagesAreTakenOrRefused) {
  expect_no_failure(Kind::kWirePages, "decode", [](uint64_t number, Mutator& mutator) {
    return take_page(mutator.mutation(number).files[kSingleFile]);
  });
}

// The harness itself: an input that crashes, hangs or says what is wrong is found by its number.
TEST(BoundedChild, TellsWhichRunFailedAndHow) {
  Bounds bounds;
  bounds.cpu_seconds = 1;
  const auto failures = run_bounded(0, 1200, bounds, 10, [](uint64_t number) -> std::string {
    if (number == 3) return "it said so";
    if (number == 600) ::abort();
    if (number == 601) {
      volatile bool forever = true;
      while (forever) {
      }
    }
    return "";
  });
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_EQ(failures[0].number, 3u);
  EXPECT_EQ(failures[0].what, "it said so");
  EXPECT_EQ(failures[1].number, 600u);
  EXPECT_NE(failures[1].what.find("Abort"), std::string::npos) << failures[1].what;
  EXPECT_EQ(failures[2].number, 601u);
  EXPECT_TRUE(failures[2].what.starts_with("it took too much CPU time") ||
              failures[2].what.starts_with("it did not end"))  // on a busy machine
      << failures[2].what;
}

// Most mutations are refused for what they changed, and not for a checksum that no longer fits.
TEST_F(MutatedInput, ReachesBehindTheChecksums) {
  constexpr uint64_t kTimes = 300;
  for (const Kind kind : {Kind::kAtf1, Kind::kAtf2, Kind::kRtc}) {
    Mutator mutator(kind, captures_of(kind, (scratch_ / "captures").string()), 3);
    Commands commands(Group::kVerify, scratch_ / "input");
    uint64_t by_checksum = 0;
    uint64_t with_findings = 0;
    for (uint64_t number = 0; number < kTimes; ++number) {
      const std::string said = commands.said(mutator.mutation(number), mutator.random());
      with_findings += said.find("offset") != std::string::npos ? 1 : 0;
      by_checksum += said.find("checksum") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(with_findings, kTimes / 3) << kind_name(kind);
    EXPECT_LT(by_checksum, with_findings / 2) << kind_name(kind) << " of " << with_findings;
  }
}

TEST_F(MutatedInput, RepeatsItself) {
  const auto captures = captures_of(Kind::kAtf2, scratch_.string());
  Mutator one(Kind::kAtf2, captures, 5);
  Mutator other(Kind::kAtf2, captures, 5);
  (void)other.mutation(1);
  EXPECT_EQ(one.mutation(77).files, other.mutation(77).files);
  EXPECT_NE(one.mutation(77).files, one.mutation(78).files);
}

}  // namespace
}  // namespace collect::ctl::testing
