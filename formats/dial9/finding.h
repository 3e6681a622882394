// What a check of a dial9 stream found: the one problem that ends reading, and what is unusual on
// the way there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "formats/core/findings.h"
#include "formats/dial9/problem.h"

namespace collect::dial9 {

enum class Check : uint8_t {
  kProblem,          // reading ended: Finding::rule says by which rule
  kBehindProblem,    // bytes behind it that no one has read
  kPoolUndefined,    // a pooled value whose id is not defined as of there
  kPoolRedefined,    // an id that is defined again
  kAnnotationType,   // annotations of a type that is not there
  kAnnotationField,  // annotations of a field that the type does not have
  kEqualFieldNames,  // a schema with a name twice
  kText,             // text that is not UTF-8
  kTimeOrder,        // events older than an earlier one of the same sub-stream
  kDeepNesting,      // lists and maps deeper than published decoders read
  kUncountedNames,   // more distinct event names than are counted
};

// "pool-undefined" and so on, for programs; of a problem rule_name() says more.
std::string_view check_name(Check check);

struct Finding {
  Severity severity = Severity::kNote;
  Check check = Check::kProblem;
  Rule rule = Rule::kNone;
  uint64_t offset = 0;   // in the stream, of the frame
  std::string sentence;  // without path and offset

  // The rule's name for a problem, the check's for everything else.
  std::string_view name() const {
    return check == Check::kProblem ? rule_name(rule) : check_name(check);
  }
};

class Findings : public FindingList<Finding> {
 public:
  using FindingList::add;
  using FindingList::add_lazily;

  template <class MakeSentence>
  void add_lazily(Severity severity, Check check, uint64_t offset, MakeSentence make_sentence) {
    add_lazily(severity,
               [&] { return Finding{severity, check, Rule::kNone, offset, make_sentence()}; });
  }
};

}  // namespace collect::dial9
