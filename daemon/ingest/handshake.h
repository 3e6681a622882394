// What must hold for a hello before anything is done for its sender, and how its words become ours.
// Pure functions on messages of wire.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/ingest/snapshot.h"
#include "formats/core/result.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

struct Refusal {
  wire::RefuseCode code{};
  std::string reason;
  bool retry = false;
};

// Empty: the hello can be served. `token` is the collector's; empty: none is asked for.
std::optional<Refusal> check_untrusted_hello(const wire::Hello& hello, std::string_view token);

// In a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

ProcessId process_id_of(const wire::Hello& hello);  // after the check
AgentSnapshot agent_from_hello(const wire::Hello& hello);
storage::SessionIdentity identity_from(const wire::Hello& hello, const wire::RecordingStart& start);
// A session found on disk has an agent that is away.
AgentSnapshot agent_from_identity(const storage::SessionIdentity& identity);

std::vector<storage::ModuleInfo> to_storage(const wire::Modules& modules);
storage::StreamInfo to_storage(const wire::StreamOpen& stream);
storage::StreamEnd to_storage(const wire::StreamClose& stream);
storage::DetailStateChange to_storage(const wire::DetailState& change);
storage::ProcessEnd to_storage(const wire::ProcessEnd& end);

// The frame's message; kDamaged when its bytes are no such message.
template <class Message>
Result<Message> parse_body(const wire::Frame& frame) {
  Message message;
  if (!message.ParseFromArray(frame.body.data(), static_cast<int>(frame.body.size()))) {
    return Error{Code::kDamaged, "frame type " + std::to_string(static_cast<unsigned>(frame.type)) +
                                     ": the body is no " + message.GetTypeName()};
  }
  return message;
}

}  // namespace collect::ingest
