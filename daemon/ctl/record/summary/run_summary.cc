#include "daemon/ctl/record/summary/run_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/summary/nothing_recorded.h"
#include "daemon/ctl/record/summary/process_lines.h"
#include "daemon/ctl/report/report_profile.h"
#include "storage/read/lod_files.h"

namespace collect::ctl {
namespace {

using control::v1::Session;

constexpr auto line = summary_line;

std::string loss_text(const Session& session) {
  std::string text;
  if (session.lost_events() != 0) text += counted(session.lost_events(), "event");
  if (session.lost_detail_records() != 0) {
    if (!text.empty()) text += " and ";
    text += counted(session.lost_detail_records(), "detail record");
  }
  return text;
}

// What the recording cost the program, and what else held it up.
std::string stall_lines(const Session& session) {
  const auto seconds = [](uint64_t ns) { return short_duration(static_cast<double>(ns) / 1e9); };
  std::string text;
  if (session.page_wait_ns() != 0) {
    const char* who =
        session.threads() > 1 ? "its threads waited, all together, " : "the program waited ";
    text =
        line("waited", fmt::format("{}{} for the collector", who, seconds(session.page_wait_ns())));
    text += line("", "(reports leave that out; --when-full drop does not wait)");
  }
  const uint64_t paused_ns = session.stalled_ns() - session.page_wait_ns();
  if (paused_ns != 0)
    text += line("stopped", fmt::format("for {}, which reports leave out", seconds(paused_ns)));
  return text;
}

// A recording that ended before its program, as the user asked.
std::string limit_line(const Session& session) {
  if (session.state() != control::v1::SESSION_STATE_COMPLETE) return "";
  if (session.status() == "time limit") {
    return line("ended", "after the time that --max-time allows; the program continued untraced");
  }
  if (session.status() == "size limit") {
    return line("ended", "at the size that --max-size allows; the program continued untraced");
  }
  return "";
}

std::string filter_lines(const RunOutcome& outcome) {
  std::string text;
  for (const std::string& pattern : outcome.unmatched) {
    const auto near = outcome.nearest.find(pattern);
    text += line("trouble",
                 fmt::format("no function matches \"{}\"{}", printable(pattern),
                             near == outcome.nearest.end()
                                 ? ""
                                 : fmt::format("; did you mean {}?", printable(near->second))));
  }
  if (!outcome.filter_error.empty()) {
    text += line("trouble", "no function filter, so nothing was recorded: " +
                                printable_sentence(outcome.filter_error));
  }
  return text;
}

// What of the program was to be recorded, and from when on.
std::string start_filter_lines(const Session& session) {
  std::string text;
  if (session.has_start_filter()) {
    text = line("filter",
                fmt::format("by --only and --except: {} matched",
                            counted(session.start_filter().functions_matched(), "function")));
  }
  if (session.late_ns() != 0) {
    text +=
        line("late", fmt::format("the filter came {} late; what was called before is not recorded",
                                 short_duration(static_cast<double>(session.late_ns()) / 1e9)));
  }
  return text;
}

// Most of the work may be in a library.
std::string coverage_line(const RunOutcome& outcome) {
  if (outcome.not_covered.empty()) return "";
  std::string names;
  const size_t count = outcome.not_covered.size();
  for (size_t i = 0; i < std::min(count, kNamedLibraries); ++i) {
    names += (i == 0 ? "" : ", ") +
             printable(std::filesystem::path(outcome.not_covered[i]).filename().string());
  }
  if (count > kNamedLibraries) names += fmt::format(" and {} more", count - kNamedLibraries);
  return line("covered", "the program alone; --dynamic='*' also records " + names);
}

std::string session_lines(const Session& session, const RunOutcome& outcome) {
  std::string state(state_word(session.state()));
  if (!is_sealed(session)) state += ", not sealed yet";
  std::string text = line("session", fmt::format("{}  ({})", printable(session.path()), state));
  // How a complete recording ended is not printed.
  if (!session.status().empty() && session.state() != control::v1::SESSION_STATE_COMPLETE) {
    text += line("", printable_sentence(session.status()));
  }
  const double seconds = session_seconds(session);
  std::string recorded = fmt::format("{} of {} in {}", counted(session.events(), "event"),
                                     counted(session.threads(), "thread"), short_duration(seconds));
  if (seconds > 0) {
    recorded += fmt::format(" ({})", short_rate(static_cast<double>(session.events()) / seconds));
  }
  text += line("recorded", fmt::format("{}, {}", recorded, short_bytes(session.stored_bytes())));
  text += start_filter_lines(session);
  text += coverage_line(outcome);
  text += limit_line(session);
  if (outcome.one_process) text += line("children", "not recorded, as --no-follow asks");
  text += line("detail", session.detail_records() == 0
                             ? std::string("none (--detail on, or collectctl detail start)")
                             : counted(session.detail_records(), "record"));
  const std::string lost = loss_text(session);
  if (session.losses_known()) {
    text += line("lost", lost.empty() ? "nothing" : lost);
  } else if (is_sealed(session)) {
    text += line("lost", printable_sentence(session.missing()));
    // What the ring still held went with the process.
    if (session.state() == control::v1::SESSION_STATE_RECOVERED && !outcome.outlived &&
        outcome.app_ending.empty()) {
      text += line("", "(--drain process ships it after any end)");
    }
  } else {
    text += line("lost", lost.empty() ? "not known yet" : lost + " so far");
  }
  if (session.calls_left_out() != 0) {
    text += line("left out", counted(session.calls_left_out(), "call") +
                                 ", as function filter, --max-depth and --longer-than ask");
  }
  if (!outcome.switched_off.empty()) {
    text += line("off", counted(outcome.switched_off.size(), "function") +
                            ", as --max-rate asks; calls from then on are missing:");
    text += line("", switched_off_text(outcome.switched_off));
  }
  if (!outcome.no_switches.empty()) {
    text += line("switches", (outcome.has_estimates ? "estimated: " : "none: ") +
                                 printable_sentence(outcome.no_switches));
  }
  text += stall_lines(session);
  if (session.symbols() == control::v1::SYMBOLS_STATE_PENDING ||
      session.symbols() == control::v1::SYMBOLS_STATE_FAILED) {
    const bool pending = session.symbols() == control::v1::SYMBOLS_STATE_PENDING;
    text +=
        line("names",
             pending ? "not all functions have names yet; the collector continues to look them up"
                     : "functions have no names (collectctl inspect says why)");
    text += line("", "(collectctl symbolize looks them up)");
  }
  if (!lost.empty() && outcome.waits) {
    text += line("", "(although the program waited for room; collectctl inspect says why)");
  } else if (!lost.empty()) {
    text +=
        line("", "a larger ring may hold them (--buffer 512); --when-full wait loses nothing and");
    text += line("", "slows the program down to what the disk takes");
  }
  return text;
}

// " DIR" of a session below a directory that is here; else the collector lists it.
std::string root_word(const Session& session) {
  std::error_code ignored;
  const std::filesystem::path place = session.path();
  if (!std::filesystem::is_directory(place, ignored)) return "";
  return " " + shell_word(place.parent_path().parent_path().string());
}

std::string session_list(const std::vector<Session>& sessions) {
  Table table({"  PROCESS", "PID", "EVENTS", "LOST", "STATE", "SESSION"});
  for (size_t column : {1, 2, 3}) table.right(column);
  for (size_t i = 0; i < std::min(sessions.size(), kMaxListedSessions); ++i) {
    const Session& session = sessions[i];
    table.add({"  " + printable(session.process_name()), std::to_string(session.pid()),
               with_thousands(session.events()), loss_count(session), state_word(session.state()),
               printable(session.path())});
  }
  std::string text = table.text();
  if (sessions.size() > kMaxListedSessions) {
    text += fmt::format("  and {} more: collectctl sessions{}\n",
                        sessions.size() - kMaxListedSessions, root_word(sessions.front()));
  }
  return text;
}

}  // namespace

const Session* largest_session(const std::vector<Session>& sessions) {
  const auto largest =
      std::max_element(sessions.begin(), sessions.end(),
                       [](const Session& a, const Session& b) { return a.events() < b.events(); });
  return largest == sessions.end() || largest->events() == 0 ? nullptr : &*largest;
}

bool has_quick_top(const Session& session) {
  return is_sealed(session) && session.events() <= kMaxQuickEvents;
}

std::vector<TopFunction> top_functions(const Session& session) {
  return has_quick_top(session) ? slow_top_functions(session) : std::vector<TopFunction>();
}

std::vector<TopFunction> slow_top_functions(const Session& session) {
  if (!is_sealed(session)) return {};
  if (!has_quick_top(session)) {
    auto trace = read::open_trace(session.path());
    // Where they can't be written, the events are read.
    if (trace) (void)read::make_lods(*trace, [](size_t, size_t) {});
  }
  ReportOptions options;
  std::ostringstream ignored;
  ReportedCapture capture;
  const int code = capture.open(session.path(), options, Answer{false, ignored, ignored});
  if (code != 0 || capture.has_unreadable_threads()) return {};
  options.sort = capture.has_switches() ? ReportSort::kCpu : ReportSort::kSelf;
  const ReportProfile profile = profile_of(capture, options, ignored);
  std::vector<TopFunction> top;
  double all_ns = 0;
  for (const ReportRow& row : profile.rows) {
    const auto self_ns =
        static_cast<double>(profile.cpu_ns ? cpu_self_ns(row.times) : row.times.self_ns);
    all_ns += self_ns;
    if (top.size() < kTopFunctions) {
      top.push_back({row.name, row.times.calls, self_ns, profile.cpu_ns.has_value()});
    }
  }
  if (all_ns <= 0) return {};
  for (TopFunction& function : top) function.self_share /= all_ns;
  return top;
}

std::string top_functions_text(const std::vector<TopFunction>& top) {
  std::string text;
  for (const TopFunction& function : top) {
    char share[32];
    std::snprintf(share, sizeof(share), "%5.1f %%  ", function.self_share * 100);
    text += line(
        !text.empty()     ? ""
        : function.is_cpu ? "self CPU"
                          : "self time",
        fmt::format("{}{}  {}", share, printable(function.name), counted(function.calls, "call")));
  }
  return text;
}

bool is_whole(const RunOutcome& outcome) {
  return outcome.trouble.empty() && outcome.unmatched.empty() && outcome.filter_error.empty() &&
         outcome.missing.empty() && outcome.unknown_processes == 0 && outcome.became.empty() &&
         std::none_of(outcome.sessions.begin(), outcome.sessions.end(), is_incomplete);
}

std::string run_summary_text(const RunOutcome& outcome) {
  const std::string signal = ended_by(outcome.exit_code);
  std::string text = "collectctl: " + printable(outcome.program);
  if (outcome.app_ending.empty()) {
    text += fmt::format(" ended with exit code {}", outcome.exit_code);
    text += signal.empty() ? "\n" : fmt::format(" ({})\n", signal);
  } else {
    text += fmt::format(" {}\n", printable_sentence(outcome.app_ending));
  }
  if (!outcome.trouble.empty()) text += line("trouble", printable_sentence(outcome.trouble));
  text += filter_lines(outcome) + missing_lines(outcome) + quiet_lines(outcome);
  const Session* largest = largest_session(outcome.sessions);
  if (largest == nullptr) {
    // Without our own trouble, silence has its cause in the program.
    const bool is_explained = !outcome.trouble.empty() || !outcome.missing.empty();
    return is_explained ? text : text + nothing_recorded(outcome);
  }
  if (outcome.sessions.size() > 1) {
    text += session_list(outcome.sessions) + "\n";
    text += fmt::format("  The largest of these {} sessions:\n", outcome.sessions.size());
  }
  text += session_lines(*largest, outcome);
  text += top_functions_text(outcome.top);
  const std::string path = shell_word(largest->path());
  text += line("next", "collectctl report " + path);
  text += line("", fmt::format("collectctl dump --merged {} | less", path));
  text += line("", "collectctl open " + path);
  return text;
}

std::string run_summary_json(const RunOutcome& outcome) {
  Json document = json_document();
  document["exit_code"] = outcome.exit_code;
  document["agent_seen"] = outcome.agent_seen;
  document["sessions"] = Json::array();
  for (const Session& session : outcome.sessions) document["sessions"].push_back(json_of(session));
  add_text(document, "trouble", outcome.trouble);
  for (const MissingProcess& process : outcome.missing) {
    document["missing"].push_back({{"pid", process.pid},
                                   {"uid", process.uid},
                                   {"program", process.program},
                                   {"reason", process.reason}});
  }
  if (outcome.unknown_processes != 0) document["unknown_processes"] = outcome.unknown_processes;
  add_text(document, "became", outcome.became);
  if (outcome.filtered) {
    document["unmatched"] = outcome.unmatched;
    add_text(document, "filter_error", outcome.filter_error);
  }
  if (!outcome.not_covered.empty()) document["not_covered"] = outcome.not_covered;
  if (outcome.rated) {
    document["switched_off"] = Json::array();
    for (const SwitchedOff& function : outcome.switched_off) {
      document["switched_off"].push_back(
          {{"name", function.name}, {"calls_per_second", function.calls_per_second}});
    }
  }
  return json_line(document);
}

}  // namespace collect::ctl
