// A session that is made of a capture of another format, for a command that shows it.
#pragma once

#include <iosfwd>
#include <string>

#include "daemon/ctl/convert/convert_command.h"
#include "formats/core/result.h"
#include "storage/fs/leftovers.h"

namespace collect::ctl {

struct MadeSession {
  std::string directory;
  storage::Leftover made;  // what that is in
};

// Of one input, in a new directory below TMPDIR. What is missing from the input is reported on
// `err`. kDamaged: nothing could be made, and `err` says why.
Result<MadeSession> make_session(ConvertOptions capture, std::ostream& err);

}  // namespace collect::ctl
