// The binary form of any WTF-trace file: the file itself, or what its JSON form converts into,
// which lies in a temporary file without a name.
#pragma once

#include "daemon/ctl/file_bytes.h"
#include "formats/core/bytes.h"
#include "formats/wtf/finding.h"

namespace collect::ctl {

class WtfBinary {
 public:
  // `file` outlives it. What the conversion of JSON finds ends in `findings`.
  static Result<WtfBinary> of(Bytes file, wtf::Findings& findings);

  Bytes bytes() const { return converted_.bytes().empty() ? file_ : converted_.bytes(); }

 private:
  explicit WtfBinary(Bytes file) : file_(file) {}

  Bytes file_;
  FileBytes converted_;
};

}  // namespace collect::ctl
