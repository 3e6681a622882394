#include <cstdlib>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/ctl/android/adb_client.h"
#include "daemon/ctl/android/phone_agent.h"
#include "daemon/ctl/doctor/checks.h"
#include "daemon/ctl/ios/usbmux_client.h"
#include "daemon/ctl/run/program_paths.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

std::string devices_text(size_t count) {
  if (count == 0) return "no device";
  return std::to_string(count) + (count == 1 ? " device" : " devices");
}

}  // namespace

std::vector<Check> check_agents() {
  std::vector<Check> checks;
  const Result<std::string> own = find_agent_library();
  checks.push_back(own.ok() ? Check{"agent, this machine", Verdict::kOk, printable(*own), ""}
                            : Check{"agent, this machine", Verdict::kProblem, own.error().message,
                                    "install libcollect-agent, or name the library by "
                                    "COLLECT_AGENT_LIBRARY"});
  for (const char* abi : kAgentAbis) {
    const std::string what = "agent, Android " + std::string(abi);
    const Result<std::string> agent = find_phone_agent(abi, "");
    checks.push_back(agent.ok() ? Check{what, Verdict::kOk, printable(*agent), ""}
                                : Check{what, Verdict::kWarning, "none is installed",
                                        "build it (`cmake --preset android`, with the NDK) and "
                                        "install it as " +
                                            installed_phone_agent(abi)});
  }
  return checks;
}

Check check_adb_server() {
  Check check{"adb server", Verdict::kWarning, "", "that is only for apps on Android phones"};
  const auto address = attach::adb_address(
      "auto", [](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  if (!address.ok()) {
    check.found = address.error().message;
    return check;
  }
  AdbClient client(*address);
  const Result<uint32_t> version = client.version();
  if (!version.ok()) {
    check.found = version.error().message;
    return check;
  }
  const auto devices = client.devices();
  if (!devices.ok()) {
    check.found = devices.error().message;
    return check;
  }
  const std::string more = devices->empty() ? "" : "; collectctl android doctor looks at them";
  return {"adb server", Verdict::kOk,
          client.address() + ", version 1.0." + std::to_string(*version) + ", " +
              devices_text(devices->size()) + more,
          ""};
}

Check check_usbmuxd() {
  const auto address = usbmuxd_address();
  if (!address.ok()) {
    return {"usbmuxd", Verdict::kWarning, address.error().message,
            "that is only for apps on iPhones"};
  }
  WaitingIo io;
  UsbmuxClient client(io, *address);
  if (const Status connected = client.connect(); !connected.ok()) {
    return {"usbmuxd", Verdict::kWarning, connected.error().message,
            "that is only for apps on iPhones"};
  }
  const size_t count = client.devices().size();
  const std::string more = count == 0 ? "" : "; collectctl ios doctor looks at them";
  return {"usbmuxd", Verdict::kOk, client.address() + ", " + devices_text(count) + more, ""};
}

}  // namespace collect::ctl
