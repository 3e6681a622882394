#include "daemon/ctl/convert/convert_command.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "daemon/ctl/convert/convert_report.h"
#include "daemon/ctl/convert/running_names.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/symbolizer.h"
#include "storage/convert/convert.h"
#include "storage/convert/session_input.h"
#include "storage/export/export.h"
#include "storage/read/lod_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using read::CaptureKind;

convert::Options conversion_of(const ConvertOptions& options) {
  convert::Options conversion;
  // A view is made of a session.
  conversion.to =
      exports::is_view(options.to) ? CaptureKind::kAtf : static_cast<CaptureKind>(options.to);
  conversion.output = options.output;
  conversion.atf_version = options.atf_version;
  conversion.wtf_json = options.wtf_json;
  conversion.force = options.force;
  return conversion;
}

Status run_view(const ConvertOptions& options, const convert::Options& conversion,
                const std::vector<convert::Input>& inputs, convert::ConvertLog& log) {
  std::vector<convert::AtfSession> sessions(inputs.size());
  std::vector<const read::Trace*> traces;
  for (size_t i = 0; i < inputs.size(); ++i) {
    COLLECT_TRY(sessions[i].open(conversion, inputs[i], log));
    traces.push_back(&sessions[i].trace());
  }
  return exports::export_sessions(traces, options.selection, options.to, options.output, log);
}

// Without names there still is a view.
void look_names_up(read::Trace& trace, convert::ConvertLog& log) {
  symbolize::SymbolizerOptions symbols;
  symbols.program = symbolize::symbolizer_program();
  const Status named = name_functions(trace, symbols, symbolize::kMaxSessionTime);
  if (!named.ok()) log.remark("functions have no names: " + named.error().message);
}

}  // namespace

int convert(const ConvertOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  std::error_code ignored;
  if (options.to != exports::Target::kAtf && fs::exists(options.output, ignored) &&
      !options.force) {
    return answer.refuse_briefly(
        {Code::kAlreadyExists, options.output + ": is there already; --force replaces it"}, 2);
  }
  if (options.to != exports::Target::kAtf &&
      !fs::is_directory(convert::directory_of(options.output), ignored)) {
    return answer.refuse_briefly(
        {Code::kNotFound, convert::directory_of(options.output) + ": there is no such directory"},
        2);
  }
  auto inputs = convert::open_inputs(options.inputs, exports::is_view(options.to));
  if (!inputs.ok()) {
    return answer.refuse(inputs.error(), 2);
  }
  convert::ConvertLog log(percent_line(err, options.progress, "converting"));
  for (convert::Input& input : *inputs) {
    const bool is_unnamed = input.kind == CaptureKind::kAtf && is_recording(input.trace);
    if (options.look_names_up && is_unnamed) look_names_up(input.trace, log);
    if (!input.trace.choice.empty())
      err << "collectctl: " << printable_sentence(input.trace.choice) << "\n";
    if (input.kind == CaptureKind::kAtf && options.to == exports::Target::kHtml) {
      // A page is looked at again. Where it cannot be kept, this one is made without it.
      (void)read::make_lods(input.trace, [](size_t, size_t) {});
    }
    if (input.kind == CaptureKind::kAtf) convert::check_session_input(input.trace, log);
    for (const auto& [path, bytes] : input.files) {
      if (!bytes.missing().empty()) log.missing(bytes.missing());
    }
  }
  const convert::Input& input = inputs->front();
  const convert::Options conversion = conversion_of(options);
  const Status converted = exports::is_view(options.to)
                               ? run_view(options, conversion, *inputs, log)
                               : convert::convert(conversion, input, log);
  if (options.progress) restart_line(err);
  if (!converted.ok()) {
    print_convert_losses(options.to, log, err);
    // Nothing matched what was asked for.
    const int code = exports::is_view(options.to) && converted.code() == Code::kNotFound ? 1 : 2;
    return answer.refuse({converted.code(), converted.error().message + "; nothing was made"},
                         code);
  }
  TextOut text(out);
  if (options.json) {
    print_convert_json(options, input.kind, log, text);
  } else {
    print_convert_text(log, text);
  }
  text.flush();
  print_convert_losses(options.to, log, err);
  return log.is_input_whole() && (!options.strict || log.left_out().empty()) ? 0 : 1;
}

}  // namespace collect::ctl
