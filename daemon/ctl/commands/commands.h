// The commands of collectctl: each is declared, with its options and what it calls, in the file of
// its name below this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/command_line/command.h"
#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {

// In the order in which the help shows them.
std::vector<CommandList> all_commands();

// ---- record/

void add_run(const CommandGroup& group);
void add_attach(const CommandGroup& group);
void add_detach(const CommandGroup& group);
void add_list(const CommandGroup& group);
void add_android(const CommandGroup& group);
void add_ios(const CommandGroup& group);
void add_doctor(const CommandGroup& group);

// ---- control/

void add_start(const CommandGroup& group);
void add_stop(const CommandGroup& group);
void add_detail(const CommandGroup& group);
void add_trigger(const CommandGroup& group);
void add_filter(const CommandGroup& group);
void add_rules(const CommandGroup& group);
void add_annotate(const CommandGroup& group);
void add_snapshot(const CommandGroup& group);

// ---- look/

void add_top(const CommandGroup& group);
void add_watch(const CommandGroup& group);
void add_report(const CommandGroup& group);
void add_open(const CommandGroup& group);
void add_dump(const CommandGroup& group);
void add_query(const CommandGroup& group);
void add_inspect(const CommandGroup& group);
void add_verify(const CommandGroup& group);

// ---- convert/

void add_convert(const CommandGroup& group);
void add_merge(const CommandGroup& group);
void add_pack(const CommandGroup& group);
void add_unpack(const CommandGroup& group);
void add_recover(const CommandGroup& group);
void add_symbolize(const CommandGroup& group);
void add_download(const CommandGroup& group);
void add_upload(const CommandGroup& group);

// ---- collector/

void add_agents(const CommandGroup& group);
void add_devices(const CommandGroup& group);
void add_sessions(const CommandGroup& group);
void add_delete(const CommandGroup& group);
void add_collectors(const CommandGroup& group);

}  // namespace collect::ctl
