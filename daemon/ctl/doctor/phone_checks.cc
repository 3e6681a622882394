#include "daemon/ctl/doctor/checks.h"

#include <fmt/core.h>
#include "daemon/ctl/record/android/phone_agent.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

std::string devices_text(size_t count) {
  if (count == 0) return "no device";
  return std::to_string(count) + (count == 1 ? " device" : " devices");
}

std::vector<Check> check_phones(const char* server, const char* kind, const char* only_for,
                                const PhonesReport& report, const std::string& phone) {
  std::vector<Check> checks;
  if (report.unreachable) {
    checks.push_back({server, Verdict::kWarning, report.unreachable->message, only_for});
  } else {
    checks.push_back({server, Verdict::kOk,
                      fmt::format("{}, {}", report.server, devices_text(report.devices)), ""});
  }
  if (phone.empty()) return checks;
  const bool is_there = report.devices > 0;
  checks.push_back({fmt::format("{} {}", kind, printable(phone)),
                    report.any_works ? Verdict::kOk : Verdict::kProblem,
                    report.any_works ? "apps on it can be recorded"
                    : is_there       ? "apps on it cannot be recorded; see below"
                                     : "it is not connected",
                    ""});
  return checks;
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

std::vector<Check> check_android_phones(const PhonesReport& report, const std::string& phone) {
  return check_phones("adb server", "Android phone", "that is only for apps on Android phones",
                      report, phone);
}

std::vector<Check> check_iphones(const PhonesReport& report, const std::string& phone) {
  return check_phones("usbmuxd", "iPhone", "that is only for apps on iPhones", report, phone);
}

}  // namespace collect::ctl
