#include "daemon/ctl/json.h"

#include <google/protobuf/util/json_util.h>

#include "formats/core/printable.h"

namespace collect::ctl {

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails only on timestamps and durations out of range: then the peer's clock is off, and a line
  // that says so beats none.
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) text = "{\"error\": \"a time in the answer is out of range\"}";
  return printable_json(text);
}

Status from_json(const std::string& text, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(text, &message);
  if (status.ok()) return {};
  return Error{Code::kInvalidArgument, std::string(status.message())};
}

}  // namespace collect::ctl
