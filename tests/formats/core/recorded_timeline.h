// What a reader of another program's trace says, as lines in its order: "begin 0 1000 parse".
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/timeline/timeline_sink.h"

namespace collect::testing {

class RecordedTimeline final : public TimelineSink {
 public:
  explicit RecordedTimeline(uint32_t max_tracks = kNone) : max_tracks_(max_tracks) {}

  uint32_t add_process(uint32_t pid) override {
    said.push_back(fmt::format("process {} pid {}", processes_, pid));
    return processes_++;
  }
  uint32_t add_track() override {
    if (tracks_ == max_tracks_) return kNone;
    said.push_back(fmt::format("track {}", tracks_));
    return tracks_++;
  }
  void name_process(uint32_t process, std::string_view name) override {
    said.push_back(fmt::format("process {} named {}", process, name));
  }
  void name_track(uint32_t track, std::string_view name) override {
    said.push_back(fmt::format("track {} named {}", track, name));
  }
  void place_track(uint32_t track, uint32_t process, uint32_t tid) override {
    said.push_back(fmt::format("track {} of {} tid {}", track, process, tid));
  }
  uint32_t function(std::string_view name, std::string_view file, uint32_t line) override {
    std::string text(name);
    if (!file.empty()) text += fmt::format(" ({}:{})", file, line);
    const auto known = std::find(functions.begin(), functions.end(), text);
    const auto number = static_cast<uint32_t>(known - functions.begin());
    if (known == functions.end()) functions.push_back(std::move(text));
    return number;
  }
  Status begin(uint32_t track, int64_t ns, uint32_t function) override {
    calls.push_back(fmt::format("begin {} {} {}", track, ns, functions.at(function)));
    return {};
  }
  Status end(uint32_t track, int64_t ns) override {
    calls.push_back(fmt::format("end {} {}", track, ns));
    return {};
  }
  Status call(uint32_t track, int64_t ns, uint64_t duration_ns, uint32_t function) override {
    calls.push_back(
        fmt::format("call {} {} {} {}", track, ns, duration_ns, functions.at(function)));
    return {};
  }
  Status marker(int64_t ns, std::string_view text) override {
    markers.push_back(fmt::format("{} {}", ns, text));
    return {};
  }
  void leave_out(std::string_view kind, uint64_t count) override {
    left_out[std::string(kind)] += count;
  }
  void missing(std::string sentence) override { lacks.push_back(std::move(sentence)); }
  void remark(std::string sentence) override { remarks.push_back(std::move(sentence)); }
  void progress(uint64_t) override {}

  std::vector<std::string> said;  // of processes and tracks
  std::vector<std::string> calls, markers, lacks, remarks, functions;
  std::map<std::string, uint64_t> left_out;

 private:
  const uint32_t max_tracks_;
  uint32_t processes_ = 0;
  uint32_t tracks_ = 0;
};

inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace collect::testing
