// Any bytes as a message of lockdownd: a length that can be believed or an error, and values within
// their limits or an error. Once as they are, once as the inside of a property list's dictionary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/ctl/record/ios/lockdown_message.h"

namespace {

using collect::Bytes;

void decode(Bytes body) {
  const auto answer = collect::ctl::decode_lockdown_answer(body);
  if (!answer.ok()) return;
  for (const std::string& text : {answer->request, answer->type, answer->value, answer->error}) {
    if (text.size() > collect::ctl::kMaxLockdownTextBytes) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, size);
  const auto length = collect::ctl::decode_lockdown_length(input);
  if (length.ok() && (*length == 0 || *length > collect::ctl::kMaxLockdownMessageBytes)) {
    std::abort();
  }
  decode(input);
  const std::string whole =
      "<plist version=\"1.0\"><dict><key>Request</key><string>GetValue</string>" +
      std::string(reinterpret_cast<const char*>(data), size) + "</dict></plist>";
  decode(Bytes(reinterpret_cast<const uint8_t*>(whole.data()), whole.size()));
  return 0;
}
