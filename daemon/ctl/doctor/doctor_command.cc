#include "daemon/ctl/doctor/doctor_command.h"

#include <algorithm>

#include "daemon/ctl/doctor/checks.h"
#include "daemon/ctl/online/commands.h"
#include "daemon/ctl/online/text.h"
#include "daemon/ctl/run/run_collector.h"
#include "daemon/ctl/terminal/json.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

const char* word_of(Verdict verdict) {
  if (verdict == Verdict::kOk) return "ok";
  return verdict == Verdict::kWarning ? "warning" : "problem";
}

std::string json_of(const std::vector<Check>& checks, bool works) {
  Json document = json_document();
  document["works"] = works;
  document["checks"] = Json::array();
  for (const Check& check : checks) {
    Json one{{"what", check.what}, {"verdict", word_of(check.verdict)}, {"found", check.found}};
    add_text(one, "way_out", check.way_out);
    document["checks"].push_back(std::move(one));
  }
  return json_line(document);
}

std::string text_of(const std::vector<Check>& checks, bool works, size_t columns) {
  Table table({"WHAT", "VERDICT", "FOUND"});
  for (const Check& check : checks) {
    table.add({check.what, word_of(check.verdict),
               check.found + (check.way_out.empty() ? "" : "; " + check.way_out)});
  }
  return table.text(columns) +
         (works ? "programs of this machine can be recorded\n"
                : "nothing can be recorded here until the problems are mended\n");
}

}  // namespace

int doctor(const DoctorOptions& options, std::ostream& out) {
  std::string root = options.root;
  std::vector<Check> checks = check_collector(options.control, root);
  const auto add = [&checks](std::vector<Check> more) {
    checks.insert(checks.end(), more.begin(), more.end());
  };
  add(check_agents());
  add({check_adb_server(), check_usbmuxd()});
  add(check_machine());
  const bool is_served = options.root.empty() && !root.empty();
  add(check_store(root.empty() ? kDefaultRoot : root, is_served));
  const bool works = std::none_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.verdict == Verdict::kProblem;
  });
  out << (options.json ? json_of(checks, works) : text_of(checks, works, options.columns));
  out.flush();
  return works ? kExitOk : kExitFailed;
}

}  // namespace collect::ctl
