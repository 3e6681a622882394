// Messages to and from usbmuxd: a header of 16 bytes, then an XML property list. Bytes in, values
// out; no sockets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::attach {

inline constexpr uint32_t kUsbmuxVersion = 1;  // the one with property lists
inline constexpr uint32_t kUsbmuxPlist = 8;

struct UsbmuxHeader {      // 16 bytes, little-endian
  uint32_t message_bytes;  //  0  this header included
  uint32_t version;        //  4  kUsbmuxVersion
  uint32_t kind;           //  8  kUsbmuxPlist
  uint32_t tag;            // 12  of the request that is answered; 0 in events
};
static_assert(sizeof(UsbmuxHeader) == 16 && offsetof(UsbmuxHeader, tag) == 12);

enum class UsbmuxResult : uint32_t {
  kOk = 0,
  kBadCommand = 1,
  kBadDevice = 2,
  kRefused = 3,
  kBadVersion = 6,
};

struct UsbmuxMessage {
  enum class Kind : uint8_t { kResult, kAttached, kDetached, kPaired, kDevices, kOther };
  Kind kind = Kind::kOther;
  uint32_t tag = 0;
  uint32_t number = 0;     // kResult: UsbmuxResult, or one that is not known here
  uint32_t device_id = 0;  // kAttached, kDetached, kPaired; another one at each replug
  std::string serial;      // kAttached: the UDID; may be empty
  std::string connection;  // kAttached: "USB", "Network", or empty
  std::string other_kind;  // kOther: its MessageType
  std::vector<UsbmuxMessage>
      devices;  // kDevices: kAttached each; what ListDevices is answered with
};

// A header that can be believed: kDamaged or kUnsupported otherwise. `bytes` are 16.
Result<UsbmuxHeader> decode_usbmux_header(Bytes bytes);
// The property list behind it.
Result<UsbmuxMessage> decode_usbmux_body(uint32_t tag, Bytes body);

// Whole requests, header included.
std::string usbmux_listen(uint32_t tag);
std::string usbmux_list_devices(uint32_t tag);
std::string usbmux_connect(uint32_t tag, uint32_t device_id, uint16_t port);

}  // namespace collect::attach
