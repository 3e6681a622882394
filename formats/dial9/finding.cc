#include "formats/dial9/finding.h"

namespace collect::dial9 {

std::string_view check_name(Check check) {
  switch (check) {
    case Check::kProblem:
      return "problem";
    case Check::kBehindProblem:
      return "behind-problem";
    case Check::kPoolUndefined:
      return "pool-undefined";
    case Check::kPoolRedefined:
      return "pool-redefined";
    case Check::kAnnotationType:
      return "annotation-type";
    case Check::kAnnotationField:
      return "annotation-field";
    case Check::kEqualFieldNames:
      return "equal-field-names";
    case Check::kText:
      return "text";
    case Check::kTimeOrder:
      return "time-order";
    case Check::kDeepNesting:
      return "deep-nesting";
    case Check::kUncountedNames:
      return "uncounted-names";
  }
  return "unknown";
}

}  // namespace collect::dial9
