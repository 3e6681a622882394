// Takes the frames of a data channel that are not pages: what begins and ends recordings and their
// streams, and what explains their records. WIRE.md "Metadata before records".
//
// Belongs to the io thread of its Peer. A frame that the protocol does not allow changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/ingest/lane/agent_decoder.h"
#include "daemon/ingest/peer/agent_recordings.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "proto/wire/frame_decoder.h"
#include "storage/model/thread_pattern.h"

namespace collect::ingest {

// Of one thread on one connection; later names come with its StreamClose.
inline constexpr uint32_t kMaxThreadRenames = 64;

class DataFrames {
 public:
  DataFrames(const IngestOptions& options, AgentProfile& profile, AgentRecordings& recordings,
             LoadedModules& modules)
      : options_(options), profile_(profile), recordings_(recordings), modules_(modules) {}

  // A new connection, whose pages the decoder takes: no stream is open.
  void restart(std::shared_ptr<AgentDecoder> decoder);
  void end_connection() { streams_.clear(); }
  // Not empty: the connection has to end.
  Verdict take(const wire::Frame& frame);
  // Those that record on this connection, by id.
  std::vector<storage::ThreadIdentity> threads() const;

 private:
  struct OpenStream : storage::ThreadIdentity {
    uint32_t renames = 0;
  };

  Verdict on_recording_start(const wire::RecordingStart& start);
  Verdict on_modules(const wire::Modules& modules);
  Verdict on_stream_open(const wire::StreamOpen& stream);
  void rename_thread(OpenStream& known, const wire::StreamOpen& stream);
  Verdict on_stream_close(const wire::StreamClose& stream);
  Verdict on_detail_state(const wire::DetailState& change);
  Verdict on_stalls(const wire::Stalls& stalls);
  Verdict on_recording_end(const wire::RecordingEnd& end);
  void store(SessionQueue::Act act);  // unless the recording is dropped
  void close_all_streams();

  const IngestOptions& options_;
  AgentProfile& profile_;
  AgentRecordings& recordings_;
  LoadedModules& modules_;

  std::shared_ptr<AgentDecoder> decoder_;
  std::unordered_map<uint32_t, OpenStream, KeyedHash> streams_;  // that are open
  uint32_t streams_opened_ = 0;                                  // on this connection
};

}  // namespace collect::ingest
