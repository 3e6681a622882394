#include "formats/dial9/problem.h"

#include <fmt/core.h>

namespace collect::dial9 {

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::kNone:
      return "none";
    case Rule::kHeader:
      return "header";
    case Rule::kVersion:
      return "version";
    case Rule::kTruncated:
      return "truncated";
    case Rule::kTag:
      return "tag";
    case Rule::kName:
      return "name";
    case Rule::kFieldType:
      return "field-type";
    case Rule::kSchemaConflict:
      return "schema-conflict";
    case Rule::kUnknownType:
      return "unknown-type";
    case Rule::kVarint:
      return "varint";
    case Rule::kElementType:
      return "element-type";
    case Rule::kNesting:
      return "nesting";
    case Rule::kTime:
      return "time";
    case Rule::kFrameSize:
      return "frame-size";
    case Rule::kState:
      return "state";
  }
  return "unknown";
}

Error to_error(const Problem& problem) {
  Code code = Code::kDamaged;
  if (problem.rule == Rule::kTruncated) code = Code::kTruncated;
  if (problem.rule == Rule::kVersion) code = Code::kUnsupported;
  if (problem.rule == Rule::kFrameSize || problem.rule == Rule::kState) code = Code::kLimit;
  return {code, fmt::format("at {}, in the frame at {}: {}", problem.offset, problem.frame_offset,
                            problem.sentence)};
}

}  // namespace collect::dial9
