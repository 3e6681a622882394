#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

std::vector<CommandList> all_commands() {
  return {
      {"Record", {add_run, add_attach, add_detach, add_list, add_android, add_ios, add_doctor}},
      {"Control",
       {add_start, add_stop, add_detail, add_trigger, add_filter, add_rules, add_annotate,
        add_snapshot}},
      {"Look",
       {add_top, add_watch, add_report, add_open, add_dump, add_query, add_inspect, add_verify}},
      {"Convert",
       {add_convert, add_merge, add_pack, add_unpack, add_recover, add_symbolize, add_download,
        add_upload}},
      {"Collector", {add_agents, add_devices, add_sessions, add_delete, add_collectors}},
  };
}

}  // namespace collect::ctl
