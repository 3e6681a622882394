#include "daemon/attach/usbmux_message.h"

#include <plist/plist.h>

#include <array>
#include <memory>

#include "daemon/attach/usbmux_limits.h"

namespace collect::attach {
namespace {

struct FreePlist {
  void operator()(void* node) const { plist_free(node); }
};
using Plist = std::unique_ptr<void, FreePlist>;

plist_t item(plist_t dictionary, const char* key, plist_type type) {
  const plist_t found = plist_dict_get_item(dictionary, key);
  return found != nullptr && plist_get_node_type(found) == type ? found : nullptr;
}

// False: it is not there, or no number of 32 bits.
bool number_of(plist_t dictionary, const char* key, uint32_t& out) {
  const plist_t found = item(dictionary, key, PLIST_UINT);
  if (found == nullptr) return false;
  uint64_t value = 0;
  plist_get_uint_val(found, &value);
  out = static_cast<uint32_t>(value);
  return value <= UINT32_MAX;
}

// Empty when it is not there. False: longer than what is shown to anybody, or not printable.
bool text_of(plist_t dictionary, const char* key, std::string& out) {
  const plist_t found = item(dictionary, key, PLIST_STRING);
  if (found == nullptr) return true;
  uint64_t length = 0;
  const char* const text = plist_get_string_ptr(found, &length);
  if (text == nullptr) return true;
  if (length > kMaxUsbmuxTextBytes) return false;
  out.assign(text, length);
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
  char* xml = nullptr;
  uint32_t xml_bytes = 0;
  plist_to_xml(request.get(), &xml, &xml_bytes);
  std::array<uint8_t, sizeof(UsbmuxHeader)> header{};
  ByteWriter writer(header);
  writer.u32(static_cast<uint32_t>(sizeof(UsbmuxHeader)) + xml_bytes);
  writer.u32(kUsbmuxVersion);
  writer.u32(kUsbmuxPlist);
  writer.u32(tag);
  std::string message(header.begin(), header.end());
  message.append(xml, xml_bytes);
  plist_to_xml_free(xml);
  return message;
}

Plist request_of(const char* type) {
  Plist request(plist_new_dict());
  plist_dict_set_item(request.get(), "MessageType", plist_new_string(type));
  return request;
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
    return Error{Code::kUnsupported, "usbmuxd sent a message of version " +
                                         std::to_string(header.version) + " and kind " +
                                         std::to_string(header.kind) + ": not property lists"};
  }
  if (header.message_bytes <= sizeof(UsbmuxHeader) ||
      header.message_bytes > kMaxUsbmuxMessageBytes) {
    return damaged("a message of " + std::to_string(header.message_bytes) + " bytes; more than " +
                   std::to_string(sizeof(UsbmuxHeader)) + " and at most " +
                   std::to_string(kMaxUsbmuxMessageBytes) + " are expected");
  }
  return header;
}

Result<UsbmuxMessage> decode_usbmux_body(uint32_t tag, Bytes body) {
  if (body.size() > kMaxUsbmuxMessageBytes) return damaged("too long a property list");
  plist_t parsed = nullptr;
  plist_from_xml(reinterpret_cast<const char*>(body.data()), static_cast<uint32_t>(body.size()),
                 &parsed);
  const Plist root(parsed);
  if (parsed == nullptr || plist_get_node_type(parsed) != PLIST_DICT) {
    return damaged("something that is no property list with a dictionary");
  }
  std::string type;
  if (!text_of(parsed, "MessageType", type)) return damaged("a MessageType that is no word");
  UsbmuxMessage message;
  message.tag = tag;
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
    return damaged("\"" + type + "\" without a DeviceID");
  }
  if (type != "Attached") {
    message.kind = type == "Paired" ? UsbmuxMessage::Kind::kPaired : UsbmuxMessage::Kind::kDetached;
    return message;
  }
  message.kind = UsbmuxMessage::Kind::kAttached;
  const plist_t properties = item(parsed, "Properties", PLIST_DICT);
  if (properties == nullptr) return damaged("\"Attached\" without Properties");
  if (!text_of(properties, "SerialNumber", message.serial) ||
      !text_of(properties, "ConnectionType", message.connection)) {
    return damaged("properties of device " + std::to_string(message.device_id) +
                   " that are too long, or not printable");
  }
  return message;
}

std::string usbmux_listen(uint32_t tag) {
  return encode(tag, request_of("Listen"));
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
