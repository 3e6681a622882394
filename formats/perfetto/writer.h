// Writes Perfetto traces (FORMAT.md): processes, threads, calls as nested slices, marks, counters,
// losses. What it is given goes out in runs of whole packets, one ByteSink::write for each, of at
// most kMaxRunBytes and one packet. Memory: one run, and 8 bytes for each function.
//
// Not thread-safe. Errors of the sink are kept, and returned by status() and finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/encoding/protobuf.h"
#include "formats/core/event_note.h"
#include "formats/perfetto/layout.h"

namespace collect {
class ZlibPieces;
}

namespace collect::perfetto {

// uuids are the caller's: any but 0, each once.
struct ProcessTrack {
  uint64_t uuid = 0;
  int32_t pid = 0;
  std::string name;
  std::vector<std::string> command_line;
};
struct ThreadTrack {
  uint64_t uuid = 0;
  int32_t pid = 0;  // of its process: threads are grouped by it
  int32_t tid = 0;
  std::string name;
};
struct PlainTrack {
  uint64_t uuid = 0;
  uint64_t parent_uuid = 0;
  std::string name;
  std::string unit;  // of a counter
};

// What is written of a function once for each thread, and again after a loss.
struct FunctionText {
  FunctionText(std::string_view text) : name(text) {}  // NOLINT: implicit
  FunctionText(std::string_view text, std::string_view source, uint32_t number)
      : name(text), file(source), line(number) {}
  std::string_view name;
  std::string_view file;  // empty: not known
  uint32_t line = 0;
};

class Writer {
 public:
  explicit Writer(ByteSink& out) : out_(out) {}

  // Tracks, before anything that is built on them. Times are ns of one clock for the whole file.
  void add_process(const ProcessTrack& process, uint64_t start_ns);
  void add_track(const PlainTrack& track, uint64_t start_ns);    // of slices and instants
  void add_counter(const PlainTrack& track, uint64_t start_ns);  // of counts

  // On any plain track, in any order of time (but the slices of one track must nest).
  void slice(uint64_t track, uint64_t first_ns, uint64_t last_ns, std::string_view name,
             const EventNotes& notes = {});
  void instant(uint64_t track, uint64_t ns, std::string_view name, const EventNotes& notes = {});
  void count(uint64_t track, uint64_t ns, uint64_t value);

  // Functions are numbered again from here on.
  void forget_functions() { names_.clear(); }

  // One thread at a time; its calls in order of time. A time before the last one of the thread
  // counts as that one, and is counted.
  void begin_thread(const ThreadTrack& thread, uint64_t start_ns);
  // `function` numbers the file's functions from 0; `name` is asked for where this sequence has not
  // said it yet: name() returns a FunctionText, or a string_view, that lives until the next call.
  template <class Name>
  void begin_call(uint64_t ns, uint32_t function, Name&& name) {
    begin_call(ns, function, name, nullptr);
  }
  template <class Name>
  void begin_call(uint64_t ns, uint32_t function, Name&& name, const EventNotes* notes);
  void end_call(uint64_t ns, const EventNotes* notes = nullptr);
  // Events are missing between the two times: ends what is open at the first, and informs the
  // importer. What is known to be open afterwards is begun again by the caller. Where slices of
  // such losses are to stand is the caller's business, too.
  void lose(uint64_t first_ns, uint64_t last_ns);
  // What is still open stays open to the end of the trace.
  void end_thread();

  // Writes what is left.
  Status finish();
  const Status& status() const { return status_; }

  size_t depth() const { return depth_; }            // of the thread, as it is in the file
  uint64_t folded_calls() const { return folded_; }  // deeper than kMaxDepth: not in the file
  uint64_t moved_times() const { return moved_; }    // that stepped back

 private:
  static constexpr uint32_t kGlobalSequence = 1;
  struct Interned {
    uint32_t generation = 0;  // of the state in which `iid` means the name
    uint32_t iid = 0;         // of its name, and of its source location
    bool has_source = false;
  };

  bool is_said(uint32_t function) const {
    return function < names_.size() && names_[function].generation == generation_;
  }
  void put_new(uint64_t ns, uint32_t function, const FunctionText& text, const EventNotes* notes);
  void put_short(uint64_t ns, EventType type, Interned function);
  void put_event(uint64_t ns, EventType type, Interned function, const FunctionText* new_text,
                 const EventNotes* notes);
  void put_source(uint32_t iid, const FunctionText& text);
  void put_notes(const EventNotes& notes);
  void put_value(const EventNote& note);
  void put_interned(uint32_t field, uint32_t iid, std::string_view name);
  void put_track(const PlainTrack& track, uint64_t start_ns, bool is_counter);
  void put_plain(uint64_t track, uint64_t ns, EventType type, std::string_view name,
                 const EventNotes& notes);
  void put_state(bool is_first, uint64_t ns);
  void put_absolute(uint64_t ns);
  uint64_t step_to(uint64_t ns);
  std::string_view clean(std::string_view text);
  void pass_on();

  ByteSink& out_;
  Status status_;
  std::vector<uint8_t> run_;
  ProtoWriter proto_{run_};
  std::vector<Interned> names_;  // by function
  uint32_t generation_ = 0;
  uint32_t next_iid_ = 1;
  std::vector<std::string> note_names_;  // by iid - 1, of this generation
  std::string text_;                     // what clean() returns may be here
  uint32_t next_sequence_ = kGlobalSequence + 1;
  uint32_t sequence_ = 0;
  uint64_t track_ = 0;  // of the thread
  uint64_t last_ns_ = 0;
  size_t depth_ = 0;
  uint64_t too_deep_ = 0;  // open calls that are not in the file
  uint64_t folded_ = 0;
  uint64_t moved_ = 0;
};

template <class Name>
void Writer::begin_call(uint64_t ns, uint32_t function, Name&& name, const EventNotes* notes) {
  if (depth_ >= kMaxDepth) {
    ++too_deep_;
    ++folded_;
    return;
  }
  ++depth_;
  if (!is_said(function)) {
    put_new(ns, function, name(), notes);
  } else if (notes == nullptr) {
    put_short(ns, EventType::kSliceBegin, names_[function]);
  } else {
    put_event(ns, EventType::kSliceBegin, names_[function], nullptr, notes);
  }
}

// Appends a run, as Writer writes it, as one packet of compressed packets.
void append_compressed_run(ZlibPieces& pieces, std::vector<uint8_t>& to, Bytes run);

}  // namespace collect::perfetto
