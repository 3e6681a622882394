// `collectctl convert INPUT… --to FORMAT -o OUTPUT`: any capture into any format
// (storage/convert/convert.h), or into that of a viewer (export/export.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/wtf/json/json.h"
#include "storage/export/exported_session.h"
#include "storage/export/target.h"

namespace collect::ctl {

struct ConvertOptions {
  // Several where they are one capture, RTC containers; for views also several captures, which are
  // on one time line then.
  std::vector<std::string> inputs;
  exports::Target to{};
  std::string output;                  // as convert::Options
  std::optional<uint8_t> atf_version;  // as convert::Options
  wtf::JsonOptions wtf_json = {wtf::JsonMode::kComplete, wtf::JsonEvents::kBase64};
  exports::ExportSelection selection;  // of views
  bool look_names_up = false;          // of sessions that are not sealed (running_names.h)
  bool force = false;                  // replace the output
  bool strict = false;                 // exit code 1 also for what the target has no place for
  bool json = false;                   // the report as one JSON document
  bool progress = false;               // `err` is a terminal
};

// 0: converted; what the target has no place for is one line on `err`. 1: converted, but something
// is missing from the input: said on `err`, counted in the report and in the new manifest; or, when
// strict, something was left out. 2: nothing was made.
int convert(const ConvertOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
