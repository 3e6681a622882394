// The events of dial9_session.h back into a session: threads, functions, calls with their detail
// records, losses and markers. One session per stream: a second one behind it, and events of others
// between, are counted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/dial9/read/decoder.h"
#include "storage/convert/convert_log.h"
#include "storage/convert/dial9/dial9_session.h"
#include "storage/convert/event_tally.h"
#include "storage/convert/session_builder.h"

namespace collect::convert {

// Names beyond this many functions, or beyond this many bytes of them, are left out and counted.
inline constexpr size_t kMaxNamedFunctions = size_t{1} << 22;
inline constexpr uint64_t kMaxFunctionNameBytes = uint64_t{1} << 30;

// What an event of a type is to us, and where the fields are that it must have.
struct SessionEventType {
  enum class Kind : uint8_t {
    kOther,  // of someone else, or without a field that it must have
    kMetadata,
    kClockSync,
    kModule,
    kThread,
    kFunction,
    kCall,
    kReturn,
    kException,
    kDetail,
    kGap,
    kMarker,
    kNotKept,  // ours, but a session that is built has no place for it
  };
  static constexpr size_t kMaxFields = 6;

  explicit SessionEventType(const dial9::KnownSchema& schema);

  Kind kind = Kind::kOther;
  static constexpr size_t kNoField = SIZE_MAX;  // of one that earlier streams lack

  std::array<size_t, kMaxFields> fields{};  // in the order of the table in dial9_session.h
};

class Dial9SessionReader {
 public:
  Dial9SessionReader(SessionBuilder& session, ConvertLog& log) : session_(session), log_(log) {}

  // Whether this event is the first one of a session of ours.
  static bool is_head(const dial9::Event& event);

  Status add(const SessionEventType& type, const dial9::Event& event);
  Status finish();

 private:
  struct Call {  // held back until it is known whether a detail record follows
    uint32_t thread = 0;
    uint64_t ns = 0;
    uint64_t function_id = 0;
    atf::EventKind kind{};
  };

  Status begin(const dial9::Event& event);
  Status flush_call();
  Status call(const SessionEventType& type, const dial9::Event& event);
  Status detail(const SessionEventType& type, const dial9::Event& event);
  Status gap(const SessionEventType& type, const dial9::Event& event);
  void module(const SessionEventType& type, const dial9::Event& event);
  void function(const SessionEventType& type, const dial9::Event& event);
  // A text as long as a manifest keeps it; what is cut off is counted.
  std::string text_of(const dial9::Event& event, size_t field);
  // The thread's position in the session; a thread that nothing explained is added.
  Result<uint32_t> thread_of(uint64_t n, uint64_t ns);
  Result<uint32_t> add_thread(uint64_t n, uint32_t thread_id, std::string_view name, uint64_t ns,
                              uint64_t end_ns);

  SessionBuilder& session_;
  ConvertLog& log_;
  bool begun_ = false;
  bool second_ = false;                             // behind the head of a second session
  std::unordered_map<uint64_t, uint32_t> threads_;  // N of thread_N -> position
  std::unordered_set<uint64_t> named_;
  uint64_t name_bytes_ = 0;
  size_t modules_ = 0;
  std::optional<Call> call_;
  EventTally left_out_;
  EventTally not_kept_;
  EventTally of_second_;
};

}  // namespace collect::convert
