// What a conversion made, what is missing and what it left out (convert_log.h tells them apart).
#pragma once

#include <iosfwd>
#include <string_view>

#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/terminal/text_out.h"
#include "storage/convert/convert_log.h"
#include "storage/read/capture_kind.h"

namespace collect::ctl {

void print_convert_json(const ConvertOptions& options, read::CaptureKind from,
                        const convert::ConvertLog& log, TextOut& out);
void print_convert_text(const convert::ConvertLog& log, TextOut& out);
void print_convert_losses(exports::Target to, const convert::ConvertLog& log, std::ostream& err);

}  // namespace collect::ctl
