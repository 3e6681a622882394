// A sealed session in the other ATF version: a second session beside the first, which is only read.
// "session_20260131_235959/pid_7" becomes "session_20260131_235959_atf1/pid_7". STORAGE.md
// "Conversion".
//
// made_session.h says where it is built, and who may call this.
#pragma once

#include "formats/atf/layout.h"
#include "formats/core/result.h"
#include "storage/rebuild/made_session.h"

namespace collect::storage {

// `version` has other files than the session has now. Without containers: those of the first hold
// the session in either version.
//   kNotFound       no such session
//   kUnsupported    it is not sealed, has that version already, or has no ATF files
//   kAlreadyExists  it was converted before
//   kNoSpace        less would be free than is to stay free; nothing was written
//   kLimit          max_session_bytes; nothing was written
// What cannot be read of the first is missing from the second, counted there and in the report.
Result<MadeSession> convert_session(Fs& fs, const SessionOptions& options, const SessionPath& from,
                                    atf::Version version, const MakingProgress& progress);

}  // namespace collect::storage
