#include "daemon/ctl/record/ios/lockdown_message.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <array>
#include <bit>

#include "daemon/attach/usbmux/property_list.h"

namespace collect::ctl {
namespace {

using attach::Plist;

Error damaged(const std::string& what) {
  return {Code::kDamaged, "lockdownd sent " + what};
}

std::string encode(const char* request, const std::string& key) {
  const Plist list(plist_new_dict());
  plist_dict_set_item(list.get(), "Label", plist_new_string("collectctl"));
  if (!key.empty()) plist_dict_set_item(list.get(), "Key", plist_new_string(key.c_str()));
  plist_dict_set_item(list.get(), "Request", plist_new_string(request));
  const std::string xml = attach::xml_of(list);
  const auto length = std::bit_cast<std::array<char, kLockdownLengthBytes>>(
      htonl(static_cast<uint32_t>(xml.size())));
  return std::string(length.data(), length.size()) + xml;
}

}  // namespace

std::string lockdown_query_type() {
  return encode("QueryType", "");
}

std::string lockdown_get_value(const std::string& key) {
  return encode("GetValue", key);
}

Result<uint32_t> decode_lockdown_length(Bytes bytes) {
  if (bytes.size() < kLockdownLengthBytes) return damaged("less than a length");
  const uint32_t length = ntohl(load_le<uint32_t>(bytes.data()));
  if (length != 0 && length <= kMaxLockdownMessageBytes) return length;
  return damaged(
      fmt::format("a message of {} bytes; 1 to {} are expected", length, kMaxLockdownMessageBytes));
}

Result<LockdownAnswer> decode_lockdown_answer(Bytes body) {
  if (body.size() > kMaxLockdownMessageBytes) return damaged("too long a property list");
  const Plist root = attach::parse_dictionary(body);
  if (!root) return damaged("something that is no property list with a dictionary");
  LockdownAnswer answer;
  std::string result;
  const auto text = [&root](const char* key, std::string& out) {
    return attach::dictionary_text(root.get(), key, kMaxLockdownTextBytes, out);
  };
  if (!text("Request", answer.request) || !text("Type", answer.type) ||
      !text("Value", answer.value) || !text("Error", answer.error) || !text("Result", result)) {
    return damaged(fmt::format("a text of more than {} bytes", kMaxLockdownTextBytes));
  }
  if (answer.request.empty()) return damaged("an answer without a request");
  // Before iOS 5 "Result" has it.
  if (answer.error.empty() && result == "Failure") answer.error = result;
  return answer;
}

}  // namespace collect::ctl
