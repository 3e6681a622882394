// Opens what a PATH on the command line means, read-only: a session (pid directory), one thread of
// it, one file, or a directory above sessions, of which the newest is taken. The format readers
// work on the bytes that are kept mapped here. PATH itself may lead through links; what is below
// it, or beside it, is opened without following any (storage/fs/rooted_directory.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/session_reader.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/read/file_bytes.h"

namespace collect::read {

struct TraceThread {
  uint32_t n = 0;
  std::string index_path;
  std::string detail_path;
  FileBytes index;                  // no bytes where it could not be opened
  std::optional<FileBytes> detail;  // absent when there is no file
  std::optional<FileBytes> lod;     // the same; lod_files.h says whether it fits
  std::optional<Error> error;       // of opening either
};

// Decided by the first bytes of a file, not by its name.
enum class TraceKind : uint8_t { kSession, kThread, kIndexFile, kDetailFile, kUnknownFile };

struct Trace {
  TraceKind kind{};
  std::string path;                  // what was opened, which may be below what was asked for
  std::string choice;                // a sentence when one session was chosen, else empty
  std::vector<TraceThread> threads;  // by n
  std::string manifest_path;
  std::optional<std::string> manifest;  // its text, where it could be read
  std::optional<Error> manifest_error;
  std::optional<FileBytes> switches;  // switches.bin, where it could be read
  std::optional<Error> switches_error;
  std::optional<Error> packed_error;  // of opening what a packed session's threads are in

  // For kUnknownFile: all of its bytes, which may be a capture of another format.
  Bytes file() const { return threads.front().index.bytes(); }

  const TraceThread* thread(uint32_t n) const;  // null: there is none

  // A sentence for each file that is there and was not opened, or not to its end (gzip_file.h).
  std::vector<std::string> unopened() const;

  // The files of all threads, or of those whose n is in `only`.
  std::vector<atf::ThreadFiles> files(const std::vector<uint32_t>& only = {}) const;
};

// kNotFound, kPermission, kIo: the path, or no session below it.
Result<Trace> open_trace(const std::string& path);

}  // namespace collect::read
