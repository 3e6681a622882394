#include "daemon/ctl/record/android/phone_variables.h"

namespace collect::ctl {

Result<std::vector<std::string>> phone_variables(const AgentSettings& settings,
                                                 const std::string& spool) {
  std::vector<std::string> variables = {
      "COLLECT_LISTEN=abstract:", "COLLECT_LOG=1", "COLLECT_SPOOL=" + spool,
      "COLLECT_FULL=" + settings.full.value_or("drop"), "COLLECT_SWITCHES=on"};
  COLLECT_TRY(set_recording(variables, settings));
  return variables;
}

}  // namespace collect::ctl
