// Writes speedscope's own files (FORMAT.md): one evented profile for each thread. Profiles come
// first and frames last, so that nothing waits in memory but the name of each frame.
//
// Not thread-safe. Errors of the sink are kept, and returned by status() and finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/text_sink.h"

namespace collect::speedscope {

inline constexpr size_t kMaxNameBytes = 16 << 10;  // of a frame; the rest is cut

struct Frame {
  std::string_view name;
  std::string_view file{};  // of the function's source; empty: not known
  uint32_t line = 0;
};

class Writer {
 public:
  // Times in the file count from `origin_ns`: readers keep them as doubles.
  Writer(ByteSink& out, uint64_t origin_ns, std::string_view exporter);

  // The number of a frame: of a function, which the caller numbers from 0, or of any name.
  // `make()`, which returns a Frame, is asked for once.
  template <class Make>
  uint32_t frame_of(uint32_t function, Make&& make) {
    if (function >= frames_of_functions_.size()) frames_of_functions_.resize(function + 1, kNone);
    uint32_t& frame = frames_of_functions_[function];
    if (frame == kNone) frame = add_frame(make());
    return frame;
  }
  uint32_t frame_named(const std::string& name);

  // Functions are numbered again from here on.
  void forget_functions() { frames_of_functions_.clear(); }

  // One profile at a time; times ascend. One before the last counts as that, and is counted.
  void begin_profile(std::string_view name);
  void open(uint64_t ns, uint32_t frame);
  void close(uint64_t ns);  // the innermost that is open
  size_t depth() const { return open_.size(); }
  // Closes what is still open.
  void end_profile(uint64_t ns);

  Status finish(std::string_view name);
  const Status& status() const { return text_.status(); }
  uint64_t moved_times() const { return moved_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t add_frame(const Frame& frame);
  uint32_t add_frame(std::string_view name) { return add_frame(Frame{name}); }
  void put_event(char type, uint32_t frame, uint64_t ns);
  void put_string(std::string_view text);

  TextSink text_;
  const uint64_t origin_ns_;
  const std::string exporter_;
  std::vector<uint32_t> frames_of_functions_;
  std::unordered_map<std::string, uint32_t> frames_by_name_;
  std::vector<std::string> frames_;  // as JSON
  std::vector<uint32_t> open_;       // frames
  bool has_profile_ = false;
  bool has_event_ = false;  // of the profile
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t moved_ = 0;
};

}  // namespace collect::speedscope
