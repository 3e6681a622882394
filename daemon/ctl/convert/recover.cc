#include "daemon/ctl/convert/recover.h"

#include <fmt/core.h>

#include <ostream>
#include <vector>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/convert/own_session.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"
#include "storage/fs/output_file.h"
#include "storage/read/capture_kind.h"
#include "storage/read/session_files.h"
#include "storage/session/session.h"

namespace collect::ctl {
namespace {

struct Outcome {
  std::string path;    // what is whole now
  std::string result;  // a sentence
  std::vector<std::string> missing;
};

int print(const RecoverOptions& options, const Outcome& outcome, std::ostream& out,
          std::ostream& err) {
  TextOut text(out);
  if (options.json) {
    Json document = json_document();
    document["path"] = outcome.path;
    document["result"] = outcome.result;
    document["missing"] = outcome.missing;
    text.put(json_line(document));
  } else {
    text.printable(outcome.path);
    text.put(": ");
    text.sentence(outcome.result);
    text.put('\n');
    text.flush();
    for (const std::string& sentence : outcome.missing) {
      err << "collectctl: missing: " << printable_sentence(sentence) << "\n";
    }
  }
  return outcome.missing.empty() ? 0 : 1;
}

Result<Outcome> recover_session(const std::string& directory) {
  const auto own = own_session(directory, "recover");
  if (!own.ok()) return own.error();
  storage::SessionOptions options;
  options.root = own->session_path.root();
  auto recovered = storage::recover_session(*own->files, options, own->session_path.directory);
  if (!recovered.ok()) return recovered.error();
  Outcome outcome;
  outcome.path = directory;
  outcome.missing = std::move(recovered->problems);
  const std::string counts =
      fmt::format("{} events, {} lost", with_thousands(recovered->totals.events),
                  with_thousands(recovered->health.lost_events));
  outcome.result =
      recovered->was_sealed
          ? "was sealed already: " + counts
          : fmt::format("sealed as {}: {}", storage::session_state_name(recovered->state), counts);
  if (recovered->restored_records != 0) {
    outcome.result += fmt::format("; {} damaged records restored from the containers",
                                  with_thousands(recovered->restored_records));
  }
  if (!recovered->health.is_complete()) outcome.result += "; " + recovered->health.missing;
  return outcome;
}

Result<Outcome> recover_file(const CaptureFormat& format, const RecoverOptions& options,
                             const std::string& path, Bytes file, std::ostream& err) {
  if (options.output.empty()) {
    return Error{
        Code::kInvalidArgument,
        path + ": say where the whole file is to go, with --output; this one stays as it is"};
  }
  auto output = storage::OutputFile::create(options.output, options.force);
  if (!output.ok()) return output.error();
  BytesDone progress;
  if (options.progress) {
    progress = [&err, all = file.size()](uint64_t done) {
      restart_line(err);
      err << "recovering " << done * 100 / std::max<uint64_t>(all, 1) << " %" << std::flush;
    };
  }
  auto missing = format.recover(file, *output, progress);
  if (options.progress) restart_line(err);
  if (!missing.ok()) return missing.error();
  COLLECT_TRY(output->commit());
  return Outcome{options.output,
                 fmt::format("a whole {} of {}", format.title, short_bytes(output->size())),
                 std::move(*missing)};
}

Result<Outcome> recover_path(const RecoverOptions& options, std::ostream& err) {
  auto trace = read::open_trace(options.path);
  if (!trace.ok()) return trace.error();
  if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
  if (trace->kind == read::TraceKind::kSession) {
    const std::string directory = trace->path;
    *trace = read::Trace();  // unmapped: files are cut and written now
    return recover_session(directory);
  }
  if (trace->kind == read::TraceKind::kUnknownFile) {
    const Bytes file = trace->file();
    if (const CaptureFormat* format = capture_format_of(file)) {
      auto outcome = recover_file(*format, options, trace->path, file, err);
      if (!outcome.ok()) return outcome;
      const std::vector<std::string> unread = trace->unopened();
      outcome->missing.insert(outcome->missing.begin(), unread.begin(), unread.end());
      return outcome;
    }
    return read::not_a_capture(trace->path, file);
  }
  return Error{Code::kInvalidArgument,
               options.path + ": a part of a session; name the session's directory"};
}

}  // namespace

int recover(const RecoverOptions& options, std::ostream& out, std::ostream& err) {
  const Result<Outcome> outcome = recover_path(options, err);
  if (outcome.ok()) return print(options, *outcome, out, err);
  return Answer{options.json, out, err}.refuse(outcome.error(), 2);
}

}  // namespace collect::ctl
