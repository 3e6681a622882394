// What a session is as rows of tables, and who takes them: files of Parquet, or a database. The
// tables are those of formats/parquet/TABLES.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "formats/calls/call.h"
#include "formats/calls/function_totals.h"
#include "storage/export/exported_session.h"

namespace collect::exports {

// The session that the rows are of.
struct CaptureSession {
  explicit CaptureSession(ExportedSession& exported);

  ExportedSession& session;
  // Process id of the agent and number of the recording: the same wherever a part of it was stored.
  // The path where the file does not say it.
  const std::string id;
  // What of the session one collector stored. "local" where the file does not say whose it is.
  const std::string part;
  std::map<uint32_t, const storage::ModuleInfo*> modules;  // by number
  // Times off the processor are known.
  bool has_switches() const { return session.manifest.identity.switches; }
};

// Where a function is: the same in every session with this build id.
struct FunctionLocation {
  FunctionLocation(const CaptureSession& of, uint64_t function_id);

  uint64_t function = 0;  // its id in the session
  uint64_t offset = 0;    // in the module
  std::string module;     // path; empty: not known
  std::string build_id;   // the same
};

struct ThreadRow {
  uint32_t thread = 0;
  uint32_t tid = 0;
  std::string name;
  uint64_t events = 0;  // of the wanted ones
  uint64_t lost_events = 0;
};

struct CallRow {
  uint32_t thread = 0;
  uint64_t seq = 0;  // the agent's number of its call event
  const calls::EndedCall& call;
  uint64_t function = 0;
  calls::WaitedTimes waited{};  // of its times, off the processor
  std::optional<uint64_t> caller{};
};

struct EventRow {
  uint32_t thread = 0;
  uint64_t seq = 0;  // the agent's number of the record
  uint64_t time_ns = 0;
  uint64_t function = 0;
  atf::EventKind kind{};
};

struct SecondRow {
  uint32_t thread = 0;
  uint64_t second = 0;
  const FunctionLocation& function;
  const calls::FunctionTimes& times;
};

struct SessionRow {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  std::string state;  // empty: not known
  uint64_t events = 0;
  uint64_t lost_events = 0;
  std::string missing;  // a sentence
};

// Takes the rows of one session after another: begin(), rows, end(). What is not wanted is not
// overridden. The first error ends the walk.
class CaptureRows {
 public:
  virtual ~CaptureRows() = default;

  virtual Status begin(const CaptureSession& /*session*/) { return {}; }
  virtual Status thread(const ThreadRow& /*row*/) { return {}; }
  virtual Status call(const CallRow& /*row*/) { return {}; }
  virtual Status event(const EventRow& /*row*/) { return {}; }
  virtual Status second(const SecondRow& /*row*/) { return {}; }
  virtual Status function(const FunctionLocation& /*place*/,
                          const calls::FunctionTimes& /*times*/) {
    return {};
  }
  virtual Status end(const SessionRow& /*row*/) { return {}; }
};

}  // namespace collect::exports
