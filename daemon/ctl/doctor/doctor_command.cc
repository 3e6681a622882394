#include "daemon/ctl/doctor/doctor_command.h"

#include <algorithm>

#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/online.h"
#include "daemon/ctl/doctor/checks.h"
#include "daemon/ctl/record/android/android_phones.h"
#include "daemon/ctl/record/ios/iphones.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/ctl/terminal/json.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

const char* word_of(Verdict verdict) {
  if (verdict == Verdict::kOk) return "ok";
  return verdict == Verdict::kWarning ? "warning" : "problem";
}

struct Findings {
  std::vector<Check> checks;
  PhonesReport android, ios;
  bool works = false;
};

std::string json_of(const Findings& findings) {
  Json document = json_document();
  document["works"] = findings.works;
  document["checks"] = Json::array();
  for (const Check& check : findings.checks) {
    Json one{{"what", check.what}, {"verdict", word_of(check.verdict)}, {"found", check.found}};
    add_text(one, "way_out", check.way_out);
    document["checks"].push_back(std::move(one));
  }
  if (!findings.android.unreachable) document["android"] = findings.android.json;
  if (!findings.ios.unreachable) document["ios"] = findings.ios.json;
  return json_line(document);
}

std::string text_of(const Findings& findings, size_t columns) {
  Table table({"WHAT", "VERDICT", "FOUND"});
  for (const Check& check : findings.checks) {
    table.add({check.what, word_of(check.verdict),
               check.found + (check.way_out.empty() ? "" : "; " + check.way_out)});
  }
  std::string text = table.text(columns);
  for (const PhonesReport* phones : {&findings.android, &findings.ios}) {
    if (phones->devices > 0) text += "\n" + phones->text;
  }
  return text + (findings.works ? "\nprograms of this machine can be recorded\n"
                                : "\nnothing can be recorded here until the problems are solved\n");
}

}  // namespace

int doctor(const DoctorOptions& options, std::ostream& out) {
  std::string root = options.root;
  Findings findings;
  findings.checks = check_collector(options.control, root);
  const auto add = [&findings](const std::vector<Check>& more) {
    findings.checks.insert(findings.checks.end(), more.begin(), more.end());
  };
  add(check_agents());
  findings.android = look_at_android_phones(options.serial, options.phone_agent, options.columns);
  add(check_android_phones(findings.android, options.serial));
  findings.ios = look_at_iphones(options.udid, options.columns);
  add(check_iphones(findings.ios, options.udid));
  add(check_machine());
  const bool is_served = options.root.empty() && !root.empty();
  add(check_store(root.empty() ? kDefaultRoot : root, is_served));
  findings.works =
      std::none_of(findings.checks.begin(), findings.checks.end(),
                   [](const Check& check) { return check.verdict == Verdict::kProblem; });
  out << (options.json ? json_of(findings) : text_of(findings, options.columns));
  out.flush();
  return findings.works ? kExitOk : kExitFailed;
}

}  // namespace collect::ctl
