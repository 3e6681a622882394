// What a conversion begins with and ends with: its inputs, told apart by content, and its report.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ctl/convert/convert.h"
#include "daemon/ctl/session_files.h"
#include "daemon/ctl/text_out.h"

namespace collect::ctl {

enum class Source : uint8_t { kAtf, kRtc, kWtf, kWtfJson, kDial9 };
std::string_view name_of(Source source);  // as --to takes it
std::string_view name_of(Target target);

// What is to be converted: one session, or the files of one capture, in order.
struct ConvertInput {
  Source source{};
  Trace trace;  // of kAtf
  std::vector<std::pair<std::string, FileBytes>> files;

  Bytes file() const { return files.front().second.bytes(); }
};

// By content. A session directory without thread files stands for its containers.
Result<ConvertInput> open_convert_input(const std::vector<std::string>& paths);
// The same for targets that take several captures: each path is one, unless all are containers of
// one session. At least one.
Result<std::vector<ConvertInput>> open_convert_inputs(const std::vector<std::string>& paths,
                                                      bool takes_several);

void print_convert_json(const ConvertOptions& options, Source from, const ConvertLog& log,
                        TextOut& out);
void print_convert_text(const ConvertLog& log, TextOut& out);
// What is missing and what is left out, as convert_log.h tells them apart.
void print_convert_losses(Target to, const ConvertLog& log, std::ostream& err);

}  // namespace collect::ctl
