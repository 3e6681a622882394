// Writes Chrome's trace events as JSON (FORMAT.md): an object with `traceEvents`, one event a line.
// Memory: one piece of text, and names of functions as JSON up to NumberedTexts::kMaxBytes.
//
// Not thread-safe. Errors of the sink are kept, and returned by status() and finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/event_note.h"
#include "formats/core/text/numbered_texts.h"
#include "formats/core/text/printable.h"
#include "formats/core/text_sink.h"

namespace collect::chrome {

inline constexpr size_t kMaxTextBytes = 16 << 10;  // of a name; the rest is cut

class Writer {
 public:
  // Times in the file count from `origin_ns`: readers keep them as doubles.
  Writer(ByteSink& out, uint64_t origin_ns);

  void add_process(int64_t pid, std::string_view name);

  // Functions are numbered again from here on.
  void forget_functions() { names_ = {}; }

  // One thread at a time; its calls in order of time. A time before the last one of the thread
  // counts as that one, and is counted.
  void begin_thread(int64_t pid, int64_t tid, std::string_view name);
  // `function` numbers the file's functions from 0; `name()` returns the function's name, whenever
  // it is not known any more.
  template <class Name>
  void begin_call(uint64_t ns, uint32_t function, Name&& name, const EventNotes* notes = nullptr) {
    put_call(begin_prefix_, ns, quoted(function, name), notes);
  }
  template <class Name>
  void end_call(uint64_t ns, uint32_t function, Name&& name, const EventNotes* notes = nullptr) {
    put_call(end_prefix_, ns, quoted(function, name), notes);
  }

  // Beside the calls of a thread: an interval, as a pair of asynchronous events. `id` is the
  // caller's: those of one id and category nest.
  void interval(int64_t pid, int64_t tid, std::string_view category, uint64_t id, uint64_t first_ns,
                uint64_t last_ns, std::string_view name, const EventNotes& notes = {});
  void instant(int64_t pid, uint64_t ns, std::string_view name, const EventNotes& notes = {});
  void count(int64_t pid, uint64_t ns, std::string_view name, uint64_t value);

  // The end of the file; `facts` go into `otherData`.
  Status finish(const EventNotes& facts);
  const Status& status() const { return text_.status(); }
  uint64_t moved_times() const { return moved_; }

 private:
  template <class Name>
  const std::string& quoted(uint32_t function, Name& name) {
    return names_.of(function, [&] { return json_of(name()); });
  }
  static std::string json_of(std::string_view text);
  void put_call(const std::string& prefix, uint64_t ns, const std::string& name,
                const EventNotes* notes);
  void begin_event(std::string_view phase, int64_t pid);
  void put_time(uint64_t ns);
  void put_notes(std::string_view key, const EventNotes& notes);

  TextSink text_;
  const uint64_t origin_ns_;
  NumberedTexts names_;
  bool is_first_ = true;
  std::string begin_prefix_;  // of the thread: an event up to its time
  std::string end_prefix_;
  uint64_t last_ns_ = 0;
  uint64_t moved_ = 0;
};

}  // namespace collect::chrome
