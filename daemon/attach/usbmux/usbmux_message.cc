#include "daemon/attach/usbmux/usbmux_message.h"

#include <fmt/core.h>

#include <array>

#include "daemon/attach/usbmux/property_list.h"
#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {
namespace {

// False: it is not there, or no number of 32 bits.
bool number_of(plist_t dictionary, const char* key, uint32_t& out) {
  const plist_t found = dictionary_item(dictionary, key, PLIST_UINT);
  if (found == nullptr) return false;
  uint64_t value = 0;
  plist_get_uint_val(found, &value);
  out = static_cast<uint32_t>(value);
  return value <= UINT32_MAX;
}

// Empty when it is not there. False: longer than what is ever shown, or not printable.
bool text_of(plist_t dictionary, const char* key, std::string& out) {
  if (!dictionary_text(dictionary, key, kMaxUsbmuxTextBytes, out)) return false;
  for (const char c : out) {
    if (c < 0x20 || c > 0x7E) return false;
  }
  return true;
}

Error damaged(const std::string& what) {
  return {Code::kDamaged, "usbmuxd sent " + what};
}

std::string encode(uint32_t tag, Plist request) {
  plist_dict_set_item(request.get(), "ClientVersionString", plist_new_string("collectord"));
  plist_dict_set_item(request.get(), "ProgName", plist_new_string("collectord"));
  plist_dict_set_item(request.get(), "kLibUSBMuxVersion", plist_new_uint(3));
  const std::string xml = xml_of(request);
  std::array<uint8_t, sizeof(UsbmuxHeader)> header{};
  ByteWriter writer(header);
  writer.u32(static_cast<uint32_t>(sizeof(UsbmuxHeader) + xml.size()));
  writer.u32(kUsbmuxVersion);
  writer.u32(kUsbmuxPlist);
  writer.u32(tag);
  return std::string(header.begin(), header.end()) + xml;
}

Plist request_of(const char* type) {
  Plist request(plist_new_dict());
  plist_dict_set_item(request.get(), "MessageType", plist_new_string(type));
  return request;
}

Result<UsbmuxMessage> event_of(plist_t parsed) {
  std::string type;
  if (!text_of(parsed, "MessageType", type)) return damaged("a MessageType that is no text");
  UsbmuxMessage message;
  if (type == "Result") {
    message.kind = UsbmuxMessage::Kind::kResult;
    if (!number_of(parsed, "Number", message.number)) return damaged("a Result without a Number");
    return message;
  }
  if (type != "Attached" && type != "Detached" && type != "Paired") {
    message.other_kind = type;
    return message;
  }
  if (!number_of(parsed, "DeviceID", message.device_id)) {
    return damaged(fmt::format("\"{}\" without a DeviceID", type));
  }
  if (type != "Attached") {
    message.kind = type == "Paired" ? UsbmuxMessage::Kind::kPaired : UsbmuxMessage::Kind::kDetached;
    return message;
  }
  message.kind = UsbmuxMessage::Kind::kAttached;
  const plist_t properties = dictionary_item(parsed, "Properties", PLIST_DICT);
  if (properties == nullptr) return damaged("\"Attached\" without Properties");
  if (!text_of(properties, "SerialNumber", message.serial) ||
      !text_of(properties, "ConnectionType", message.connection)) {
    return damaged(fmt::format("properties of device {} that are too long, or not printable",
                               message.device_id));
  }
  return message;
}

// What ListDevices is answered with; another kind where there is no list.
Result<UsbmuxMessage> list_of(plist_t parsed) {
  UsbmuxMessage message;
  const plist_t list = dictionary_item(parsed, "DeviceList", PLIST_ARRAY);
  if (list == nullptr) return message;
  message.kind = UsbmuxMessage::Kind::kDevices;
  const uint32_t count = plist_array_get_size(list);
  if (count > kMaxUsbmuxDevices) return damaged(fmt::format("{} devices", count));
  for (uint32_t i = 0; i < count; ++i) {
    const plist_t entry = plist_array_get_item(list, i);
    if (plist_get_node_type(entry) != PLIST_DICT) return damaged("a device that is no dictionary");
    Result<UsbmuxMessage> device = event_of(entry);
    if (!device.ok()) return device.error();
    if (device->kind != UsbmuxMessage::Kind::kAttached) return damaged("a list of other things");
    message.devices.push_back(std::move(*device));
  }
  return message;
}

}  // namespace

Result<UsbmuxHeader> decode_usbmux_header(Bytes bytes) {
  ByteReader reader(bytes);
  UsbmuxHeader header{};
  header.message_bytes = reader.u32();
  header.version = reader.u32();
  header.kind = reader.u32();
  header.tag = reader.u32();
  if (!reader.ok()) return Error{Code::kTruncated, "less than a header of usbmuxd"};
  if (header.version != kUsbmuxVersion || header.kind != kUsbmuxPlist) {
    return Error{Code::kUnsupported,
                 fmt::format("usbmuxd sent a message of version {} and kind {}: not property lists",
                             header.version, header.kind)};
  }
  if (header.message_bytes <= sizeof(UsbmuxHeader) ||
      header.message_bytes > kMaxUsbmuxMessageBytes) {
    return damaged(fmt::format("a message of {} bytes; more than {} and at most {} are expected",
                               header.message_bytes, sizeof(UsbmuxHeader), kMaxUsbmuxMessageBytes));
  }
  return header;
}

Result<UsbmuxMessage> decode_usbmux_body(uint32_t tag, Bytes body) {
  if (body.size() > kMaxUsbmuxMessageBytes) return damaged("too long a property list");
  const Plist root = parse_dictionary(body);
  if (!root) return damaged("something that is no property list with a dictionary");
  Result<UsbmuxMessage> message = list_of(root.get());
  if (message.ok() && message->kind != UsbmuxMessage::Kind::kDevices)
    message = event_of(root.get());
  if (message.ok()) message->tag = tag;
  return message;
}

std::string usbmux_listen(uint32_t tag) {
  return encode(tag, request_of("Listen"));
}

std::string usbmux_list_devices(uint32_t tag) {
  return encode(tag, request_of("ListDevices"));
}

std::string usbmux_connect(uint32_t tag, uint32_t device_id, uint16_t port) {
  Plist request = request_of("Connect");
  plist_dict_set_item(request.get(), "DeviceID", plist_new_uint(device_id));
  // In network byte order, as a number: what a little-endian host's htons() makes of it.
  const auto swapped = static_cast<uint16_t>(port >> 8 | port << 8);
  plist_dict_set_item(request.get(), "PortNumber", plist_new_uint(swapped));
  return encode(tag, std::move(request));
}

}  // namespace collect::attach
