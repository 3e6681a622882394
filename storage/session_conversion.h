// A sealed session in the other ATF version: a second session beside the first, which is only read.
// "session_20260131_235959/pid_7" becomes "session_20260131_235959_atf1/pid_7". STORAGE.md
// "Conversion".
//
// The new session is built below <root>/.converting and renamed when it is sealed, so that it is
// there whole or not at all. Whoever calls these holds the root's lock, and converts one session at
// a time. May block on the disk for as long as it takes to read and write a session.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/core/result.h"
#include "storage/session_layout.h"
#include "storage/session_rebuild.h"

namespace collect::storage {

struct ConvertedSession {
  SessionPlace place;
  ReplayReport report;
  Manifest manifest;  // as it is on the disk
};

// After each page: bytes of records that were read, of how many. An error ends the conversion with
// it, and nothing is left.
using ConversionProgress = std::function<Status(uint64_t done, uint64_t all)>;

// `version` has other files than the session has now. Without containers: those of the first hold
// the session in either version.
//   kNotFound       no such session
//   kUnsupported    it is not sealed, has that version already, or has no ATF files
//   kAlreadyExists  it was converted before
//   kNoSpace        less would be free than is to stay free; nothing was written
//   kLimit          max_session_bytes; nothing was written
// What cannot be read of the first is missing from the second, counted there and in the report.
Result<ConvertedSession> convert_session(Fs& fs, const SessionOptions& options,
                                         const SessionPlace& from, atf::Version version,
                                         const ConversionProgress& progress);

// Removes what a conversion left that never ended.
Status remove_unfinished_conversions(Fs& fs, const std::string& root);

}  // namespace collect::storage
