// Options and checks that several commands have, with one text and one meaning.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/command_line/command.h"
#include "daemon/ctl/control/online.h"
#include "daemon/ctl/look/tail.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/upload/store_request.h"
#include "storage/export/exported_session.h"

namespace collect::ctl {

// formats/core/text/function_pattern.h, storage/model/thread_pattern.h.
inline constexpr char kFunctionHelp[] =
    "Only this function: its name, with or without namespace and arguments, a pattern with * and "
    "?, or a 0x… id; may be repeated";
inline constexpr char kThreadHelp[] =
    "Only this thread: the operating system's id, thread_N (in files) or name=PATTERN; may be "
    "repeated";
inline constexpr char kExceptHelp[] = "Do not record this function; may be repeated";
inline constexpr char kPhoneAgentHelp[] =
    "libcollect_agent.so for the phone (default: the installed one for its ABI)";
// Which store, and who asks: as other programs for S3 know it.
inline constexpr char kStoreVariables[] =
    "AWS_ENDPOINT_URL is the address of a store that is not AWS, AWS_REGION its region. Keys come\n"
    "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile AWS_PROFILE of\n"
    "~/.aws/credentials.\n";

Argument add_thread(const Command& command, std::vector<std::string>& threads);
Argument add_function(const Command& command, std::vector<std::string>& functions);
// --from and --until.
std::array<Argument, 2> add_window(const Command& command, select::WindowWords& when);
// The part of a capture: --from, --until, --thread, --function. `when` is put before each help.
void add_selection(const Command& command, exports::ExportSelection& selection,
                   const std::string& when);
// --interval and --duration of what follows a recording.
std::array<Argument, 2> add_follow_times(const Command& command, FollowedCalls& followed);
void add_color(const Command& command, ColorChoice& color);
// A path, or a list of them.
template <class Path>
Argument add_capture(const Command& command, Path& path) {
  return command.positional("PATH", path,
                            "A session, one thread or one file of it (default: your newest "
                            "recording)");
}
Argument add_store(const Command& command, std::string& url, const char* help);

// A process's number; 0: the word is something else.
pid_t process_in(const std::string& word);

// Fills in a capture that is not given. False: there is none, which was reported.
bool has_capture(std::string& path, bool json);
bool has_capture(std::vector<std::string>& paths, bool json);

// Whether the word is a path: it begins with / or ./, or such a directory is here. Tags and names
// of sessions may have a slash within.
bool is_path(const std::string& word);

// A terminal whose lines can be written again: TERM is not "dumb".
bool is_terminal(int fd);
size_t terminal_columns();  // of standard output; 0: it is no terminal
bool shows_color(ColorChoice choice, bool json);

// Where a command's answer goes, and its error.
Answer answer_of(const Invocation& invocation);
// The collector that a command talks to; a line on the error stream names one that was chosen.
Online online(const Invocation& invocation);

// A reader that goes away ends the output, not the process; a signal removes what was begun.
void take_default_signals();

// Ends here with a program of ours in its place. Where that cannot be started: a line on the error
// stream, and the exit code.
int become_program(const std::string& name, std::vector<std::string> words);
int become_store_program(upload::StoreRequest request, bool json);

}  // namespace collect::ctl
