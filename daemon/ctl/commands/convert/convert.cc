// collectctl convert: of files here, or of a session of the collector into another ATF version.
#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/session_conversion.h"
#include "daemon/ctl/convert/convert_command.h"

namespace collect::ctl {
namespace {

struct ConvertLine {
  ConvertOptions convert;
  std::optional<uint32_t> atf_version;
  bool at_collector = false;
};

std::vector<std::pair<std::string, exports::Target>> target_words() {
  std::vector<std::pair<std::string, exports::Target>> words;
  exports::for_each_target(
      [&](exports::Target target) { words.emplace_back(name_of(target), target); });
  return words;
}

int convert_here(ConvertLine& line, bool has_target, const Invocation& invocation) {
  ConvertOptions& options = line.convert;
  const auto refuse = [&invocation](const std::string& sentence) {
    return answer_of(invocation).refuse_briefly({Code::kInvalidArgument, sentence}, kExitUsage);
  };
  if (!has_target) return refuse("--to is required; see collectctl convert --help");
  if (options.output.empty()) return refuse("--output is required; see collectctl convert --help");
  if (line.atf_version && options.to != exports::Target::kAtf)
    return refuse("--atf-version is for --to atf");
  const exports::ExportSelection& selection = options.selection;
  if (!exports::is_view(options.to) && (selection.is_part() || !selection.functions.empty())) {
    return refuse("--from, --until, --thread and --function are for --to " + exports::view_words());
  }
  if (selection.value != exports::TimeValue::kWall && options.to != exports::Target::kFolded)
    return refuse("--value is for --to folded");
  if (!has_capture(options.inputs, invocation.json)) return kExitUsage;
  if (line.atf_version) options.atf_version = static_cast<uint8_t>(*line.atf_version);
  options.json = invocation.json;
  options.progress = is_terminal(STDERR_FILENO);
  return convert(options, std::cout, std::cerr);
}

int convert_at_collector(const ConvertLine& line, const Invocation& invocation) {
  const std::vector<std::string>& inputs = line.convert.inputs;
  if (inputs.size() > 1 || !line.atf_version) {
    return answer_of(invocation)
        .refuse_briefly({Code::kInvalidArgument,
                         "--at-collector takes one session, and --atf-version 1 or 2; see "
                         "collectctl convert --help"},
                        kExitUsage);
  }
  ConversionOptions options;
  if (!inputs.empty()) options.session = inputs.front();
  options.atf_version = *line.atf_version;
  options.strict = line.convert.strict;
  return convert_session(online(invocation), options);
}

void add_wtf_json(const Command& command, wtf::JsonOptions& options) {
  command.choice<wtf::JsonEvents>(
      "--wtf-events", "FORM", options.events,
      {{"base64", wtf::JsonEvents::kBase64}, {"json", wtf::JsonEvents::kEvents}},
      "How wtf-json holds events: base64, which the published viewer reads, or json, which people "
      "can read and the viewer ignores (default base64)");
  command.choice<wtf::JsonMode>(
      "--wtf-mode", "MODE", options.mode,
      {{"complete", wtf::JsonMode::kComplete}, {"partial", wtf::JsonMode::kPartial}},
      "Mode of wtf-json: complete, one document, or partial, one line for each chunk, which the "
      "published viewer refuses (default complete)");
}

}  // namespace

void add_convert(const CommandGroup& group) {
  const Command command = group.add("convert", "Convert a capture into another format");
  const auto line = std::make_shared<ConvertLine>();
  ConvertOptions& options = line->convert;
  command.positional(
      "INPUT", options.inputs,
      "A session, or a file of any format, also of Chrome, Perfetto, speedscope or folded stacks; "
      "several: the RTC containers of one session, or for viewers several captures on one time "
      "line (default: your newest recording)");
  const Argument to = command.choice<exports::Target>("--to", "FORMAT", options.to, target_words(),
                                                      "Format of the output");
  const Argument output = command.option("-o,--output", "FILE", &options.output,
                                         "File to write; for atf and parquet, a directory");
  command.atf_version(line->atf_version,
                      "Version of the trace files that --to atf makes: 1 or 2 (default: that of "
                      "the input, of other formats 2)");
  add_wtf_json(command, options.wtf_json);
  add_selection(command, options.selection, "For viewers");
  command.choice<exports::TimeValue>(
      "--value", "TIME", options.selection.value,
      {{"wall", exports::TimeValue::kWall},
       {"cpu", exports::TimeValue::kCpu},
       {"wait", exports::TimeValue::kWait}},
      "For folded: the time that stacks weigh: wall, of that on a processor (cpu), or off it "
      "(wait; default wall)");
  const Argument force = command.flag("--force", options.force, "Replace the output file");
  command.flag("--strict", options.strict, "Exit with 1 also if the format cannot hold something");
  const Argument at_collector = command.flag(
      "--at-collector", line->at_collector,
      "Let the collector convert its session INPUT (default: the newest) to --atf-version, beside "
      "the session");
  for (const Argument& other : {to, output, force}) (void)other.excludes(at_collector);
  command.json();
  command.collector();
  command.footer(
      "Exit code 1: converted, but something is missing from the input; a message says what.\n"
      "\n"
      "With --at-collector the session stays unchanged: session_…_atf1 is made beside it. Ctrl-C\n"
      "cancels the conversion and leaves nothing of it.\n"
      "\n"
      "Examples:\n"
      "  collectctl convert traces/session_…/pid_… --to wtf -o app.wtf-trace\n"
      "  collectctl convert trace.json --to atf -o sessions\n"
      "  collectctl convert --at-collector session_20260131_235959/pid_4711 --atf-version 1");
  command.run([line, to](const Invocation& invocation) {
    return line->at_collector ? convert_at_collector(*line, invocation)
                              : convert_here(*line, to.is_given(), invocation);
  });
}

}  // namespace collect::ctl
