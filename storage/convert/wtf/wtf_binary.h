// The binary form of any WTF-trace file: the file itself, or what its JSON form converts into,
// which is in a temporary file without a name.
#pragma once

#include <string>

#include "formats/core/bytes.h"
#include "formats/wtf/finding.h"
#include "storage/read/file_bytes.h"
#include "storage/read/unnamed_file.h"

namespace collect::convert {

class WtfBinary {
 public:
  // `file` outlives it. What the conversion of JSON finds ends in `findings`. `directory` is for
  // the temporary file.
  static Result<WtfBinary> of(Bytes file, wtf::Findings& findings,
                              const std::string& directory = read::temporary_directory());

  Bytes bytes() const { return converted_.bytes().empty() ? file_ : converted_.bytes(); }

 private:
  explicit WtfBinary(Bytes file) : file_(file) {}

  Bytes file_;
  read::FileBytes converted_;
};

}  // namespace collect::convert
