// What `collectctl doctor` looks at. Nothing is changed; what is written is a file without a name.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/control/connection/control_target.h"
#include "daemon/ctl/doctor/check.h"
#include "daemon/ctl/record/phones/phones_report.h"

namespace collect::ctl {

// ---- collector_checks.cc

// The program, its control plane, and the port that agents connect to. `root` becomes the running
// collector's, where one answers and `root` is empty.
std::vector<Check> check_collector(const ControlTarget& given, std::string& root);

// ---- phone_checks.cc

std::vector<Check> check_agents();
// The server of the phones; and the one phone that is meant, if `phone` names it.
std::vector<Check> check_android_phones(const PhonesReport& report, const std::string& phone);
std::vector<Check> check_iphones(const PhonesReport& report, const std::string& phone);

// ---- machine_checks.cc

// How many descriptors a collector can have.
Check check_open_files();
// Checks `uname -r` for what agents need of the kernel.
Check check_kernel(std::string_view release);
// `cpuinfo` and `clocksource` as the kernel writes them.
Check check_clock(std::string_view cpuinfo, std::string_view clocksource);
// Checks /proc/meminfo and vm.overcommit_memory.
Check check_memory(std::string_view meminfo, std::string_view overcommit);
// Checks kernel.yama.ptrace_scope; empty: there is none.
Check check_attach(std::string_view ptrace_scope, bool is_root);
// Whether the kernel reports switches to this process, and kernel.perf_event_paranoid.
Check check_switches(bool are_reported, std::string_view paranoid);
std::vector<Check> check_machine();

// ---- disk_check.cc

inline constexpr uint64_t kMaxProbeBytes = 256u << 20;
inline constexpr std::chrono::milliseconds kProbeTime{1'000};  // of writing, without the sync
inline constexpr uint64_t kLeastFreeBytes = 1u << 30;
inline constexpr uint64_t kScarceFreeBytes = uint64_t{10} << 30;
inline constexpr uint64_t kSlowBytesPerSecond = 100'000'000;  // three million events

// Space and speed where sessions go: at `root`, or at what is there of the way to it. A collector
// that runs (`is_served`) may write where this user may not.
std::vector<Check> check_store(const std::string& root, bool is_served);

}  // namespace collect::ctl
