// Any bytes as a message of usbmuxd: a header that can be believed or an error, and values within
// their limits or an error. Once as they are, once as the inside of a property list's dictionary,
// which hardly any input would find by itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/attach/usbmux/usbmux_limits.h"
#include "daemon/attach/usbmux/usbmux_message.h"

namespace {

using collect::Bytes;
using collect::attach::UsbmuxMessage;

void check(const UsbmuxMessage& message) {
  for (const std::string& text : {message.serial, message.connection, message.other_kind}) {
    if (text.size() > collect::attach::kMaxUsbmuxTextBytes) std::abort();
  }
}

void decode(Bytes body) {
  const auto message = collect::attach::decode_usbmux_body(1, body);
  if (!message.ok()) return;
  if (message->devices.size() > collect::attach::kMaxUsbmuxDevices) std::abort();
  check(*message);
  for (const UsbmuxMessage& device : message->devices) check(device);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  const auto header = collect::attach::decode_usbmux_header(input);
  if (header.ok() && (header->message_bytes <= sizeof(collect::attach::UsbmuxHeader) ||
                      header->message_bytes > collect::attach::kMaxUsbmuxMessageBytes)) {
    std::abort();
  }
  decode(input);
  const std::string inside(reinterpret_cast<const char*>(data), size);
  for (const char* type : {"Attached", "Result", "Detached"}) {
    const std::string whole = "<plist version=\"1.0\"><dict><key>MessageType</key><string>" +
                              std::string(type) + "</string>" + inside + "</dict></plist>";
    decode(Bytes(reinterpret_cast<const uint8_t*>(whole.data()), whole.size()));
  }
  const std::string list = "<plist version=\"1.0\"><dict><key>DeviceList</key><array>" + inside +
                           "</array></dict></plist>";
  decode(Bytes(reinterpret_cast<const uint8_t*>(list.data()), list.size()));
  return 0;
}
