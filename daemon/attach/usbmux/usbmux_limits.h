// Every limit and pace of the usbmux source, in one file.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace collect::attach {

// A message of ours or of usbmuxd, with its header. What we ask for is answered in well below 2
// KiB, and a list of devices in 1 KiB each.
inline constexpr uint32_t kMaxUsbmuxMessageBytes = 64u << 10;
inline constexpr size_t kMaxUsbmuxTextBytes = 256;  // serial number, connection type
inline constexpr size_t kMaxUsbmuxDevices = 256;    // DeviceIDs known at once; more are not shown

// For connecting to usbmuxd, asking, and the answer: Connect goes to the device and back.
inline constexpr std::chrono::milliseconds kUsbmuxDeadline{5'000};
// An event that was begun and does not come whole ends the connection.
inline constexpr std::chrono::milliseconds kUsbmuxStall{10'000};
inline constexpr std::chrono::milliseconds kUsbmuxFirstRetry{100};
inline constexpr std::chrono::milliseconds kUsbmuxLastRetry{500};

// Where agents on iOS listen: the first free port of these.
inline constexpr uint16_t kFirstAgentPort = 7720;
inline constexpr uint16_t kLastAgentPort = 7729;
inline constexpr size_t kUsbmuxProbesAtOnce = 4;
// Connects, of all devices together, that usbmuxd has not answered; beyond it the search is tried
// again later.
inline constexpr size_t kMaxUsbmuxOpens = 512;

}  // namespace collect::attach
