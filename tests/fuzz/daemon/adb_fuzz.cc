// Any bytes as what an adb server and a phone say: answers, the device list, a shell's packets and
// /proc/net/unix.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/attach/adb/adb_protocol.h"
#include "daemon/attach/unix_sockets.h"

namespace {

using collect::attach::AdbAnswer;

void answer(AdbAnswer::Parts parts, std::string_view bytes) {
  AdbAnswer decoder(parts);
  while (decoder.wanted() != 0) {
    const size_t wanted = decoder.wanted();
    if (wanted > collect::attach::kMaxAdbRequestBytes) std::abort();
    if (bytes.size() < wanted || !decoder.take(bytes.substr(0, wanted)).ok()) return;
    bytes.remove_prefix(wanted);
  }
  if (decoder.text().size() > collect::attach::kMaxAdbRequestBytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  answer(AdbAnswer::Parts::kStatus, bytes);
  answer(AdbAnswer::Parts::kText, bytes);
  answer(AdbAnswer::Parts::kStatusAndText, bytes);
  const auto list = collect::attach::parse_adb_devices(bytes);
  if (list.devices.size() > collect::attach::kMaxAdbDevices) std::abort();
  for (const auto& device : list.devices) {
    if (device.serial.empty() || device.reported_state.empty()) std::abort();
    if (device.is_usable == !device.reason.empty()) std::abort();
  }
  const auto shell = collect::attach::parse_shell_v2(bytes);
  if (shell.ok() && shell->output.size() + shell->errors.size() > size) std::abort();
  if (collect::attach::parse_listening_agents(bytes).names.size() >
      collect::attach::kMaxAgentsPerDevice) {
    std::abort();
  }
  return 0;
}
