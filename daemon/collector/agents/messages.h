// Snapshots of ingest and manifests on disk, in the words of the control plane.
#pragma once

#include <string>
#include <string_view>

#include "collect/control/v1/control.pb.h"
#include "daemon/attach/device_table.h"
#include "daemon/ingest/link/snapshot.h"
#include "daemon/upload/upload_status.h"
#include "formats/core/result.h"
#include "proto/wire/wire.pb.h"

namespace collect::daemon {

// Before the serial, in the name of a device.
inline constexpr std::string_view kDevicePrefix = "devices/";

namespace api = ::collect::control::v1;

api::Agent to_message(const ingest::AgentSnapshot& agent);
api::Session to_message(const ingest::SessionSnapshot& session);
api::Device to_message(const attach::DeviceView& device);
api::StoreStats to_message(const std::string& url, const upload::UploadStatus& status);
// `json` is the manifest as it is built on disk. kDamaged when it is none.
Result<api::Manifest> manifest_message(const std::string& session_name, std::string json);

// What an adb server, a path or a system call said, as a message may hold it: one string that is no
// UTF-8 would make clients refuse the whole answer.
std::string utf8_text(const std::string& text);

std::string agent_name(ingest::AgentId id);  // "agents/7"
api::Selector selector_of(const ingest::AgentSnapshot& agent);
// Names as people give them: with or without the prefix.
std::string_view bare_agent_name(std::string_view name);    // "7"
std::string_view bare_session_name(std::string_view name);  // "session_…/pid_N"

google::protobuf::Timestamp timestamp(ingest::SystemTime time);
wire::DetailMode to_wire(api::DetailMode mode);
// Why nothing can be sent to an agent that is dialled.
Error not_there(const ingest::AgentSnapshot& agent);
// The error for a command that the agent did not carry out.
Error refusal(const wire::CommandResult& result);
// The device of a place on one, "devices/<serial>"; empty: the address is of no device.
std::string device_name_of(const std::string& address);

}  // namespace collect::daemon
