#include "daemon/ingest/link/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {
namespace {

constexpr uint32_t kMaxTurnedAway = 64;  // in one go; then others of the thread have their turn

int open_nothing() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

std::string refusal_frame() {
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_RESOURCES);
  refuse.set_reason("the collector's machine has no descriptor left; connect again");
  refuse.set_retry(true);
  std::string frame(sizeof(wire::FrameHeader), '\0');
  COLLECT_CHECK(refuse.AppendToString(&frame));
  const Bytes whole(reinterpret_cast<const uint8_t*>(frame.data()), frame.size());
  wire::encode_control_header(wire::FrameType::kRefuse, whole.subspan(sizeof(wire::FrameHeader)),
                              &crc32c, reinterpret_cast<uint8_t*>(frame.data()));
  return frame;
}

}  // namespace

uint64_t usable_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto all = static_cast<uint64_t>(limit.rlim_cur);
  return all - std::min(all / 4, kReservedDescriptors);
}

principal::BudgetLimits budget_limits(const IngestOptions& options) {
  using principal::Resource;
  const uint64_t descriptors =
      options.descriptors != 0 ? options.descriptors : usable_descriptors();
  principal::BudgetLimits limits;
  limits[Resource::kDescriptors] = {descriptors, kLeastConnections, "the limit of open files"};
  // Half of the descriptors are for what the connections bring.
  const uint64_t connections = std::min<uint64_t>(options.max_connections, descriptors / 2);
  limits[Resource::kConnections] = {connections, kLeastConnections, "max_connections"};
  limits[Resource::kSessions] = {options.max_sessions, kLeastSessions, "max_unsealed_sessions"};
  limits[Resource::kMemory] = {options.accounted_memory, kLeastMemory, "max_memory_bytes"};
  limits[Resource::kInodes] = {options.unsealed_files, kLeastFiles, "max_unsealed_files"};
  limits.stream_opens = {options.stream_opens_per_second, options.stream_opens_at_once};
  limits.manifest_bytes = {kManifestBytesPerSecond, kManifestBytesAtOnce};
  return limits;
}

SpareDescriptor::SpareDescriptor() : spare_(open_nothing()) {}

SpareDescriptor::~SpareDescriptor() {
  if (spare_ >= 0) ::close(spare_);
}

uint32_t SpareDescriptor::turn_away(int listener, bool say_why) {
  const std::string frame = say_why ? refusal_frame() : std::string();
  uint32_t turned_away = 0;
  for (; turned_away < kMaxTurnedAway; ++turned_away) {
    if (spare_ >= 0) ::close(spare_);
    spare_ = -1;
    const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) break;
    // Best effort: a peer that loses the reason finds the connection closed, and comes again too.
    // What it has sent is read first, since closing over unread bytes resets the connection.
    char unread[4096];
    if (!frame.empty()) (void)::send(accepted, frame.data(), frame.size(), MSG_NOSIGNAL);
    (void)::shutdown(accepted, SHUT_WR);
    while (::recv(accepted, unread, sizeof unread, 0) > 0) continue;
    ::close(accepted);
    spare_ = open_nothing();
  }
  if (spare_ < 0) spare_ = open_nothing();
  return turned_away;
}

}  // namespace collect::ingest
