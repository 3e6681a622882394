// What there is to know of an iPhone without being paired with it.
#pragma once

#include <string>

#include "daemon/ctl/record/ios/usbmux_client.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr unsigned kLeastIos = 15;
inline constexpr std::chrono::milliseconds kLockdownDeadline{5'000};  // of each answer

struct IphoneFacts {
  std::string name;     // "Anna's iPhone"
  std::string model;    // "iPhone15,2"
  std::string version;  // "17.5.1"; each may be empty: it did not say
};

// Asks lockdownd. kUnavailable, kNotFound: it does not answer; kUnsupported: it is being restored.
Result<IphoneFacts> look_at_iphone(UsbmuxClient& client, const std::string& serial);
// kUnsupported: below kLeastIos.
Status check_ios(const std::string& serial, const IphoneFacts& facts);

// The device that is meant: `wanted`, or the only one there is.
Result<attach::SourceDevice> choose_iphone(const UsbmuxClient& client, const std::string& wanted);

// "00008110-… (Anna's iPhone, iPhone15,2, iOS 17.5.1)"
std::string iphone_text(const std::string& serial, const IphoneFacts& facts);

}  // namespace collect::ctl
