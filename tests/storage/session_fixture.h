// What the session tests share: a directory of their own, a clock that stops until it
// is set, and the independent checker of the reference pack.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/check.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"
#include "storage/session/session.h"
#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"
#include "tests/storage/fake_stream.h"

namespace collect::storage::test {

#define ASSERT_OK(expression)                                                  \
  do {                                                                         \
    const auto& assert_ok_result = (expression);                               \
    ASSERT_TRUE(assert_ok_result.ok()) << to_string(assert_ok_result.error()); \
  } while (false)
#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    const auto& expect_ok_result = (expression);                               \
    EXPECT_TRUE(expect_ok_result.ok()) << to_string(expect_ok_result.error()); \
  } while (false)

class FakeClock final : public Clock {
 public:
  uint64_t unix_ns() override { return unix; }
  uint64_t monotonic_ns() override { return monotonic; }
  uint64_t unix = 1'800'000'000'000'000'000;
  uint64_t monotonic = 1'000'000'000'000;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = parent() + "/storage_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  // In memory where that is possible: the tests sync thousands of times.
  static std::string parent() {
    if (::access("/dev/shm", W_OK) == 0) return "/dev/shm";
    return std::filesystem::temp_directory_path().string();
  }

  std::string path_;
};

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}

// The words of checkers that were not written from this code: the tree's, and the reference pack's
// where it is there.
inline std::vector<std::string> independent_checks(const std::string& directory) {
  static reference::PythonTools checkers =
      reference::python_tools(reference::independent_programs("check_atf.py", "atf_check.py"));
  std::vector<std::string> all;
  for (reference::PythonTool& checker : checkers) {
    const reference::Ran ran = checker.run({directory});
    all.push_back(ran.status == 0 ? ran.out
                                  : ran.out + "exit status " + std::to_string(ran.status));
  }
  return all;
}
// After a power loss a sector behind the last acknowledged record may be zeros, and a detail
// record's payload has no checksum (STORAGE.md "Known issues"). Where bits of a file were changed,
// what a record says of functions, and in its order of times, may be another's ("Damaged records").
enum class Payloads { kWhole, kMayHaveZeros, kMayContradict };

inline bool is_expected(atf::Check check, Payloads payloads) {
  switch (check) {
    case atf::Check::kPayload:
      return payloads != Payloads::kWhole;
    case atf::Check::kPayloadFunction:
    case atf::Check::kRecordType:
    case atf::Check::kLinkTime:
      return payloads == Payloads::kMayContradict;
    default:
      return false;
  }
}

// Our own reader finds nothing wrong with any thread either.
inline void expect_reader_ok(const std::string& directory, Payloads payloads = Payloads::kWhole) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.is_directory()) continue;
    const std::vector<uint8_t> index = read_file(entry.path().string() + "/index.atf");
    const std::string detail_path = entry.path().string() + "/detail.atf";
    std::vector<uint8_t> detail_bytes;
    std::optional<Bytes> detail;
    if (std::filesystem::exists(detail_path)) {
      detail_bytes = read_file(detail_path);
      detail = detail_bytes;
    }
    const atf::ThreadReport report = atf::check_thread(0, index, detail);
    EXPECT_EQ(atf::grade_of({&report, 1}), atf::Grade::kOk) << entry.path();
    for (const atf::Finding& finding : report.findings.list()) {
      if (is_expected(finding.check, payloads)) continue;
      ADD_FAILURE() << entry.path() << " at " << finding.offset << ": " << finding.sentence;
    }
  }
}

// The session is whole and quiet: no error, no warning.
inline void expect_reference_ok(const std::string& directory,
                                Payloads payloads = Payloads::kWhole) {
  expect_reader_ok(directory, payloads);
  if (!std::filesystem::exists(directory + "/thread_0")) return;  // refused: it has no thread
  for (const std::string& words : independent_checks(directory)) {
    EXPECT_NE(words.find(": ok, "), std::string::npos) << words;
    EXPECT_EQ(words.find("warning"), std::string::npos) << words;
    EXPECT_EQ(words.find("error"), std::string::npos) << words;
  }
}

inline SessionIdentity test_identity(atf::Version version = atf::Version::kV2) {
  SessionIdentity identity;
  identity.process_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  identity.recording = 1;
  identity.pid = 4711;
  identity.process_name = "program";
  identity.arch = atf::Arch::kX86_64;
  identity.os = atf::Os::kLinux;
  identity.clock = atf::ClockType::kBoottime;
  identity.version = version;
  return identity;
}

// Events section of a file whose header and footer are there.
inline std::vector<uint8_t> section_of(const std::string& path) {
  std::vector<uint8_t> bytes = read_file(path);
  if (bytes.size() < 128) return {};
  return {bytes.begin() + 64, bytes.end() - 64};
}

class SessionTest : public ::testing::Test {
 protected:
  SessionOptions options() {
    SessionOptions options;
    options.root = root.path();
    options.clock = &clock;
    options.symbolize = false;
    return options;
  }
  std::unique_ptr<Session> make(atf::Version version = atf::Version::kV2) {
    auto session = Session::create(fs, options(), test_identity(version));
    EXPECT_TRUE(session.ok()) << to_string(session.error());
    return session.ok() ? std::move(*session) : nullptr;
  }
  static Status append(Session& session, const Page& page) {
    return session.append_pages(std::span<const Page>(&page, 1));
  }
  Manifest manifest_of(const std::string& directory) {
    auto manifest = read_manifest(fs, directory);
    EXPECT_TRUE(manifest.ok()) << to_string(manifest.error());
    return manifest.ok() ? *manifest : Manifest{};
  }

  std::vector<std::string> list_sessions_of(const std::string& path) {
    auto session_paths = list_sessions(fs, path);
    std::vector<std::string> names;
    if (session_paths.ok()) {
      for (const SessionPath& session_path : *session_paths) names.push_back(session_path.name);
    }
    return names;
  }

  PosixFs fs;
  FakeClock clock;
  TemporaryDirectory root;
};

}  // namespace collect::storage::test
