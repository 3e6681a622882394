// RTC containers back into a session: what CaptureWriter wrote is given to a Session again,
// call by call, so that the thread files come out as they were, byte for byte. Damaged and missing
// parts show as gaps, counted like everything else that is lost.
//
// Containers are borrowed bytes (map them); any run of one session's, in order. Used on one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/rtc/read/reader.h"
#include "storage/rebuild/session_rebuild.h"

namespace collect::storage {

class CaptureReplay {
 public:
  // The new session is made below `options.root`, named after the time that it was recorded at.
  // `options.clock` and `options.symbolize` are not used: time and names are those of the
  // containers. `version` is that of the new files; absent: the containers'.
  CaptureReplay(Fs& fs, SessionOptions options, std::optional<atf::Version> version = {});

  using Progress = std::function<void(uint64_t)>;

  // The next container of the run. `name` is for messages; `progress` gets bytes of this container.
  // One without its head is read with the first manifest that is later in it, or in a container
  // that is added later. kInvalidArgument: it belongs to another session. kNoSpace, kIo: the
  // target's disk.
  Status add(const std::string& name, Bytes container, const Progress& progress = {});
  // Seals what was built. kNotFound when there is no manifest in any container.
  Result<ReplayReport> finish();

 private:
  struct Waiting {
    std::string name;
    Bytes container;
    Progress progress;
  };

  Status replay(const std::string& name, Bytes container, const Progress& progress);
  Status take(const rtc::Object& object);
  Status take_manifest(Bytes json, uint64_t offset);
  Status take_change(Bytes json, uint64_t offset);
  Status take_page(Bytes object, uint64_t offset);
  Status settle(const Result<Refusal>& taken, uint64_t offset);
  void problem(uint64_t offset, const std::string& sentence);

  SessionRebuild session_;
  std::vector<Waiting> waiting_;  // containers before the first manifest
  std::string name_;              // of the present container
  std::vector<uint8_t> unpacked_;
};

}  // namespace collect::storage
