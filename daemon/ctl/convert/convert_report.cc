#include "daemon/ctl/convert/convert_report.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/core/text/figures.h"

namespace collect::ctl {
namespace {

using read::CaptureKind;

constexpr size_t kShownKinds = 3;  // of what is left out

}  // namespace

void print_convert_losses(exports::Target to, const convert::ConvertLog& log, std::ostream& err) {
  for (const storage::MissingInput& missing : log.missing()) {
    err << "collectctl: missing from the input: ";
    if (missing.count != 0) err << with_thousands(missing.count) << " ";
    err << printable_sentence(missing.what) << "\n";
  }
  if (log.missing_left_out() != 0) {
    err << "collectctl: missing from the input: " << log.missing_left_out() << " things more\n";
  }
  for (const std::string& sentence : log.remarks()) {
    err << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  if (log.remarks_left_out() != 0) {
    err << "collectctl: " << log.remarks_left_out() << " more remarks\n";
  }
  if (log.left_out().empty()) return;
  // One line, however much it is: the kinds with the most.
  std::vector<std::pair<uint64_t, std::string_view>> kinds;
  for (const auto& [what, count] : log.left_out()) kinds.emplace_back(count, what);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  err << "collectctl: left out, " << name_of(to) << " has no place for it: ";
  for (size_t i = 0; i < std::min(kinds.size(), kShownKinds); ++i) {
    err << (i == 0 ? "" : "; ") << with_thousands(kinds[i].first) << " "
        << printable_sentence(kinds[i].second);
  }
  if (kinds.size() > kShownKinds) {
    err << "; and " << kinds.size() - kShownKinds << " kinds more (--json lists them)";
  }
  err << "\n";
}

void print_convert_json(const ConvertOptions& options, CaptureKind from,
                        const convert::ConvertLog& log, TextOut& out) {
  Json document = json_document();
  document["from"] = read::capture_kind_name(from);
  document["to"] = name_of(options.to);
  document["written"] = Json::array();
  for (const auto& [path, bytes] : log.written()) {
    document["written"].push_back({{"path", path}, {"bytes", bytes}});
  }
  document["counts"] = Json::object();
  for (const auto& [what, count] : log.counts()) document["counts"][what] = count;
  document["missing"] = Json::array();
  for (const storage::MissingInput& missing : log.missing()) {
    Json one{{"what", missing.what}};
    if (missing.count != 0) one["count"] = missing.count;
    document["missing"].push_back(std::move(one));
  }
  document["missing_left_out"] = log.missing_left_out();
  document["left_out"] = Json::object();
  for (const auto& [what, count] : log.left_out()) document["left_out"][what] = count;
  document["remarks"] = log.remarks();
  out.put(json_line(document));
}

void print_convert_text(const convert::ConvertLog& log, TextOut& out) {
  for (const auto& [path, bytes] : log.written()) {
    out.printable(path);
    out.put(": ");
    out.put(short_bytes(bytes));
    out.put('\n');
  }
  for (const auto& [what, count] : log.counts()) {
    out.put("  ");
    out.put(with_thousands(count));
    out.put(' ');
    out.put(what == "detail_records" ? "detail records"
            : what == "lost_events"  ? "lost events"
                                     : what);
    out.put('\n');
  }
}

}  // namespace collect::ctl
