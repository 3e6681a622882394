// Sessions on disk for tests of the commands that read files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "formats/atf/writer.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/reference_files.h"

namespace collect::ctl::testing {

namespace fs = std::filesystem;

struct Step {
  uint64_t ns;
  atf::EventKind kind;
  uint64_t function_id;
  uint64_t detail_seq = atf::kNoDetail;
};

inline constexpr auto kCall = atf::EventKind::kCall;
inline constexpr auto kReturn = atf::EventKind::kReturn;
inline constexpr auto kException = atf::EventKind::kException;

// A finalized index of these events.
inline std::vector<uint8_t> index_of(const std::vector<Step>& steps, uint32_t tid) {
  std::vector<uint8_t> events;
  for (const Step& step : steps) {
    atf::IndexEvent event;
    event.timestamp_ns = step.ns;
    event.kind = step.kind;
    event.function_id = step.function_id;
    event.detail_seq = step.detail_seq;
    uint8_t bytes[atf::kEventBytes];
    encode_index_event(atf::Version::kV2, event, bytes);
    atf::testing::append(events, bytes);
  }
  atf::IndexHeader header{atf::Version::kV2, atf::Arch::kX86_64, atf::Os::kLinux,
                          atf::ClockType::kBoottime};
  header.thread_id = tid;
  header.event_count = steps.size();
  header.footer_offset = atf::kEventsOffset + events.size();
  atf::IndexFooter footer;
  footer.event_count = steps.size();
  footer.bytes_written = events.size();
  footer.checksum = section_checksum(atf::Version::kV2, events);
  if (!steps.empty()) {
    header.time_start_ns = footer.time_start_ns = steps.front().ns;
    header.time_end_ns = footer.time_end_ns = steps.back().ns;
  }
  std::vector<uint8_t> file;
  uint8_t block[atf::kHeaderBytes];
  encode_index_header(header, block);
  atf::testing::append(file, block);
  atf::testing::append(file, events);
  encode_index_footer(footer, block);
  atf::testing::append(file, block);
  return file;
}

class OfflineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(::testing::TempDir()) / "offline_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    session_ = root_ / "session_20250102_030405" / "pid_42";
    fs::create_directories(session_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write_text(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  void write_thread(int n, const std::vector<uint8_t>& index,
                    const std::vector<uint8_t>& detail = {}) {
    const fs::path directory = session_ / ("thread_" + std::to_string(n));
    atf::testing::write_file(directory / "index.atf", index);
    if (!detail.empty()) atf::testing::write_file(directory / "detail.atf", detail);
  }
  // Thread 0: 12 events of 1000..1110 ns with a detail record at each third one.
  void write_planned_session() {
    atf::testing::ThreadPlan plan;
    plan.events = 12;
    plan.detail_every = 3;
    const auto made = build_thread(plan);
    write_thread(0, made.index, made.detail);
    write_text(session_ / "manifest.json", planned_manifest());
  }
  static std::string planned_manifest() {
    return R"json({"threads":[{"id":0,"has_detail":true,"thread_id":4711,"name":"main",
      "ended":true,"events":12,
      "detail_records":4,"lost_events":0,"lost_detail_records":0}],
      "time_start_ns":1000,"time_end_ns":1110,"clock_type":3,"format_version":"2.2",
      "state":"complete","gaps":[],
      "totals":{"events":12,"detail_records":4,"lost_events":0,"lost_detail_records":0},
      "modules":[{"module_id":0,"path":"/usr/bin/app"},{"module_id":1,"path":"/lib/libz.so"}],
      "symbols":[{"function_id":"0x100","module_id":0,"symbol_index":256,"name":"parse(char*)"}]})json";
  }

  fs::path root_;
  fs::path session_;
  std::ostringstream out_;
  std::ostringstream err_;
};

}  // namespace collect::ctl::testing
