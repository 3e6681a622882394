#include "daemon/ctl/convert/merge.h"

#include <fmt/core.h>

#include <ostream>
#include <utility>

#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"
#include "storage/model/collector_identity.h"
#include "storage/rebuild/merge_parts.h"
#include "storage/select/recordings.h"

namespace collect::ctl {
namespace {

using storage::SessionPart;

std::string collector_of(const SessionPart& part) {
  const storage::CollectorIdentity& collector = part.manifest.identity.collector;
  return collector.is_known() ? storage::collector_name(collector) : "";
}

void print_text(const select::MergedRecording& merged, TextOut& text, std::ostream& err) {
  const storage::SessionTotals& totals = merged.report.session.totals;
  text.printable(merged.directory);
  text.put(fmt::format(": {}, {} events, {} lost", counted(merged.parts.size(), "part"),
                       with_thousands(totals.events), with_thousands(totals.lost_events)));
  if (merged.report.repeated_events != 0) {
    text.put(fmt::format(", {} in several parts", with_thousands(merged.report.repeated_events)));
  }
  text.put('\n');
  text.flush();
  for (const storage::MissingInput& missing : merged.report.session.missing) {
    err << "collectctl: missing: ";
    if (missing.count != 0) err << with_thousands(missing.count) << " ";
    err << printable_sentence(missing.what) << "\n";
  }
}

Json json_of(const select::MergedRecording& merged) {
  const storage::SessionTotals& totals = merged.report.session.totals;
  Json parts = Json::array();
  for (const SessionPart& part : merged.parts) {
    Json one = {{"path", part.directory}, {"events", part.manifest.totals.events}};
    add_text(one, "collector", collector_of(part));
    parts.push_back(std::move(one));
  }
  Json missing = Json::array();
  for (const storage::MissingInput& each : merged.report.session.missing) {
    Json one = {{"what", each.what}};
    if (each.count != 0) one["count"] = each.count;
    missing.push_back(std::move(one));
  }
  return {{"path", merged.directory},
          {"state", storage::session_state_name(merged.report.session.state)},
          {"events", totals.events},
          {"lost_events", totals.lost_events},
          {"repeated_events", merged.report.repeated_events},
          {"parts", std::move(parts)},
          {"missing", std::move(missing)}};
}

}  // namespace

int merge(const MergeOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  select::Recordings recordings;
  for (const std::string& path : options.inputs) {
    const auto sessions = select::sessions_of(path);
    if (!sessions.ok()) return answer.refuse(sessions.error(), 2);
    for (const std::string& session : *sessions) {
      const Status added = recordings.add(session);
      if (!added.ok()) return answer.refuse(added.error(), 2);
    }
  }
  TextOut text(out);
  Json document = json_document();
  document["sessions"] = Json::array();
  bool is_whole = true;
  const auto percent = percent_line(err, options.progress, "merging");
  for (auto& [key, parts] : recordings.parts()) {
    const auto merged =
        select::merge_recording(std::move(parts), options.output, [&](uint64_t done, uint64_t all) {
          percent(done, all);
          return Status();
        });
    if (options.progress) restart_line(err);
    if (!merged.ok()) return answer.refuse(merged.error(), 2);
    is_whole = is_whole && merged->report.session.missing.empty();
    if (options.json) {
      document["sessions"].push_back(json_of(*merged));
    } else {
      print_text(*merged, text, err);
    }
  }
  if (options.json) text.put(json_line(document));
  text.flush();
  return is_whole ? 0 : 1;
}

}  // namespace collect::ctl
