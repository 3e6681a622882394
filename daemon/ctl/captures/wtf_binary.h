// The binary form of any WTF-trace file: the file itself, or what its JSON form converts into,
// which lies in a temporary file without a name.
#pragma once

#include <string>

#include "daemon/ctl/file_bytes.h"
#include "daemon/ctl/unnamed_file.h"
#include "formats/core/bytes.h"
#include "formats/wtf/finding.h"

namespace collect::ctl {

class WtfBinary {
 public:
  // `file` outlives it. What the conversion of JSON finds ends in `findings`. `directory` is where
  // the temporary file lies.
  static Result<WtfBinary> of(Bytes file, wtf::Findings& findings,
                              const std::string& directory = temporary_directory());

  Bytes bytes() const { return converted_.bytes().empty() ? file_ : converted_.bytes(); }

 private:
  explicit WtfBinary(Bytes file) : file_(file) {}

  Bytes file_;
  FileBytes converted_;
};

}  // namespace collect::ctl
