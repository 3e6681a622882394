// Any capture into any format. Between two formats it goes through an ATF session: it is what all
// others can be made from and into; where neither is ATF, one is built beside the output and
// removed again. Within one format nothing is lost. Streams: memory does not grow with the capture.
// What is missing from the input and what the target has no place for are distinguished
// (convert_log.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/wtf/json/json.h"
#include "storage/convert/convert_log.h"
#include "storage/fs/leftovers.h"
#include "storage/read/capture_kind.h"
#include "storage/read/session_files.h"

namespace collect::convert {

// What is to be converted: one session, or the files of one capture, in order.
struct Input {
  read::CaptureKind kind{};
  read::Trace trace;  // of kAtf
  std::vector<std::pair<std::string, read::FileBytes>> files;

  Bytes file() const { return files.front().second.bytes(); }
};

// By content. A session directory without thread files means its containers.
Result<Input> open_input(const std::vector<std::string>& paths);
// For targets that take several captures: each path is one, unless all are containers of one
// session. At least one.
Result<std::vector<Input>> open_inputs(const std::vector<std::string>& paths, bool takes_several);

struct Options {
  read::CaptureKind to{};
  std::string output;  // a file, or for ATF the directory that the session is made in
  std::optional<uint8_t> atf_version;  // of kAtf; absent: the input's, or 2
  // For kWtfJson. By default what the published viewer loads with all its events.
  wtf::JsonOptions wtf_json = {wtf::JsonMode::kComplete, wtf::JsonEvents::kBase64};
  bool force = false;  // replace the output
};

Status convert(const Options& options, const Input& input, ConvertLog& log);

// An ATF session: the input itself, or one that is made of it beside the output for as long as this
// object lives.
class AtfSession {
 public:
  // `input` outlives it.
  Status open(const Options& options, const Input& input, ConvertLog& log);
  const read::Trace& trace() const { return *trace_; }

 private:
  std::optional<storage::Leftover> temporary_;
  read::Trace built_;
  const read::Trace* trace_ = nullptr;
};

// Where an output goes: there is room for temporary files that are as large.
std::string directory_of(const std::string& output);

}  // namespace collect::convert
