#include "daemon/inherited_sockets.h"

#include <fmt/core.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <string>
#include <vector>

namespace collect::daemon {
namespace {

Error wrong(int handle, const std::string& name, const std::string& why) {
  return {Code::kInvalidArgument, fmt::format("inherited socket {} \"{}\": {}", handle, name, why)};
}

}  // namespace

Result<InheritedSockets> take_inherited_sockets() {
  char** listed = nullptr;
  const int count = sd_listen_fds_with_names(true, &listed);
  if (count < 0) return errno_error(-count, "inherited sockets (LISTEN_FDS, LISTEN_FDNAMES)");
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(listed[i]);
    ::free(listed[i]);
  }
  ::free(listed);
  InheritedSockets sockets;
  for (int i = 0; i < count; ++i) {
    const int handle = SD_LISTEN_FDS_START + i;
    const std::string& name = names[static_cast<size_t>(i)];
    int* const place = name == "ingest"    ? &sockets.ingest
                       : name == "control" ? &sockets.control
                                           : nullptr;
    if (place == nullptr) {
      return wrong(handle, name, "the names are ingest and control (FileDescriptorName=)");
    }
    if (*place != -1) return wrong(handle, name, "there is one already; one address each");
    if (sd_is_socket(handle, AF_UNSPEC, SOCK_STREAM, true) <= 0) {
      return wrong(handle, name, "it is no stream socket that listens (ListenStream=, Accept=no)");
    }
    *place = handle;
  }
  return sockets;
}

}  // namespace collect::daemon
