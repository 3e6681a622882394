#include "daemon/ctl/record/android/app/app_process.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "daemon/ctl/control/messages/text.h"
#include "formats/core/text/glob.h"
#include "formats/core/text/printable.h"
#include "formats/patch/attach_options.h"
#include "formats/patch/plan_layout.h"

namespace collect::ctl {
namespace {

// How long the agent has to put its stubs in place and to answer, in tenths of a second: less than
// kShellBound. The runtime attaches it in the app's main thread, which may be busy.
constexpr int kLooksForAnswer = 400;

std::string app_on(const AdbDevice& device, const AndroidApp& app) {
  return fmt::format("{} on {}", app.package, device.serial());
}

// The path of a line of /proc/PID/maps: what is behind five words.
std::string mapped_path(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  for (int i = 0; i < 5; ++i) words >> word;
  std::string path;
  std::getline(words >> std::ws, path);
  return path;
}

bool is_code(const std::string& line) {
  const size_t at = line.find(' ');
  return at != std::string::npos && line.substr(at + 1, 4).find('x') != std::string::npos;
}

void take_mapping(const std::string& line, const AndroidApp& app, AppProcess& process) {
  const std::string path = mapped_path(line);
  if (path.find("/libcollect_agent.so") != std::string::npos) {
    process.has_agent = true;
    return;
  }
  if (app.code_directory.empty() || !path.starts_with(app.code_directory + "/")) return;
  if (path.ends_with(".apk") && is_code(line)) process.has_libraries_in_apk = true;
  if (!path.ends_with(".so")) return;
  const auto known = std::find(process.libraries.begin(), process.libraries.end(), path);
  if (known == process.libraries.end()) process.libraries.push_back(path);
}

std::vector<std::string> chosen_libraries(const AppProcess& process,
                                          const std::vector<std::string>& patterns) {
  std::vector<std::string> chosen;
  for (const std::string& path : process.libraries) {
    const std::string name = std::filesystem::path(path).filename().string();
    const bool is_meant =
        std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return pattern == patch::kProgramItself || matches_glob(pattern, path) ||
                 matches_glob(pattern, name);
        });
    if (is_meant) chosen.push_back(path);
  }
  return chosen;
}

Error no_library(const AppProcess& process, const AndroidApp& app) {
  if (!process.libraries.empty()) {
    return {
        Code::kNotFound,
        fmt::format("--dynamic: the pattern matches no library of {} that is loaded; there is {}",
                    app.package, printable(process.libraries.front()))};
  }
  if (process.has_libraries_in_apk) {
    return {Code::kUnsupported,
            app.package +
                " runs its libraries out of the APK, where they can't be read as files: build it "
                "with useLegacyPackaging (packaging.jniLibs in its build.gradle), and install it "
                "again"};
  }
  return {Code::kNotFound, app.package +
                               " has loaded no library of its own yet: code of Java and Kotlin "
                               "can't be recorded so; where a library comes later, attach then"};
}

// Takes what cannot be found by the build id out of the plans: on the phone the file has another
// inode.
Status take_out_nameless(patch::ModulePlans& plans) {
  std::error_code error;
  size_t named = 0;
  for (const auto& entry : std::filesystem::directory_iterator(plans.folder.path(), error)) {
    if (entry.path().filename().string().starts_with(patch::kFileBegin)) {
      std::error_code ignored;
      std::filesystem::remove(entry.path(), ignored);
    } else {
      ++named;
    }
  }
  if (error) return Error{Code::kIo, fmt::format("{}: {}", plans.folder.path(), error.message())};
  if (named != 0) return {};
  return Error{Code::kUnsupported,
               "the app's libraries have no build id: link them with -Wl,--build-id"};
}

// "am" ends with its help or an exception; the first line that says more than that is what counts.
std::string refusal_of(const attach::ShellOutput& said) {
  std::istringstream lines(fmt::format("{}\n{}", said.errors, said.output));
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Exception: ") != std::string::npos || line.starts_with("Error")) return line;
    if (first.empty()) first = line;
  }
  return first;
}

Error am_refused(const AdbDevice& device, const AndroidApp& app, const attach::ShellOutput& said) {
  const std::string words = refusal_of(said);
  if (words.find("Unknown process") != std::string::npos) {
    return {Code::kNotFound, app_on(device, app) + " ended before the agent was attached"};
  }
  if (words.find("not debuggable") != std::string::npos) {
    return {Code::kPermission, app_on(device, app) + " is not debuggable: install its debug build"};
  }
  return {Code::kPermission,
          fmt::format("{}: Android refuses to attach an agent: {}", app_on(device, app),
                      words.empty() ? fmt::format("am ended with {}", said.exit_code)
                                    : printable_sentence(words))};
}

}  // namespace

Result<pid_t> find_process(const AdbDevice& device, const std::string& package) {
  const auto running = device.shell("pidof " + package);
  if (!running.ok()) return running.error();
  const pid_t pid = running->exit_code == 0 ? std::atoi(running->output.c_str()) : 0;
  if (pid > 0) return pid;
  return Error{Code::kNotFound,
               fmt::format("{} does not run on {}: start it, or use collectctl android run",
                           package, device.serial())};
}

Result<AppProcess> look_at_process(const AdbDevice& device, const AndroidApp& app) {
  const Result<pid_t> pid = find_process(device, app.package);
  if (!pid.ok()) return pid.error();
  AppProcess process;
  process.pid = *pid;
  // What has no path is of no interest, and there is much of it.
  const auto maps = device.shell(
      fmt::format("run-as {} cat /proc/{}/maps | grep -E '[.](so|apk)'", app.package, *pid));
  if (!maps.ok()) return maps.error();
  if (maps->output.empty()) {
    const std::string why = maps->errors.empty() ? "" : ": " + printable_sentence(maps->errors);
    return Error{Code::kPermission, fmt::format("{}: run-as does not show what it has loaded{}",
                                                app_on(device, app), why)};
  }
  std::istringstream lines(maps->output);
  for (std::string line; std::getline(lines, line);) take_mapping(line, app, process);
  return process;
}

Result<patch::ModulePlans> plans_of_app(const AppProcess& process, const AndroidApp& app,
                                        const std::vector<std::string>& patterns,
                                        LibraryPull& pull) {
  const std::vector<std::string> chosen = chosen_libraries(process, patterns);
  if (chosen.empty()) return no_library(process, app);
  std::vector<std::string> files;
  std::vector<std::string> left_out;
  for (const std::string& path : chosen) {
    auto file = pull.fetch_file(path);
    if (file.ok()) {
      files.push_back(std::move(*file));
    } else if (file.error().code == Code::kUnavailable || chosen.size() == 1) {
      return file.error();
    } else {
      left_out.push_back(fmt::format("{}: {}", path, file.error().message));
    }
  }
  if (files.empty()) return Error{Code::kIo, left_out.front()};
  auto plans = patch::plans_of_modules(files, {"*"});
  if (!plans.ok()) return plans;
  COLLECT_TRY(take_out_nameless(*plans));
  plans->left_out.insert(plans->left_out.begin(), left_out.begin(), left_out.end());
  return plans;
}

Result<std::string> attach_agent_to(const AdbDevice& device, const AndroidApp& app, pid_t pid,
                                    const std::string& library, const std::string& answer,
                                    const std::vector<std::string>& variables) {
  std::string options = answer + "\n";
  for (const std::string& entry : variables) options += entry + "\n";
  if (options.size() > patch::kAgentOptionsBytes) {
    return Error{Code::kLimit, "the agent's settings are too long: fewer patterns, please"};
  }
  const auto said = device.shell(fmt::format("am attach-agent {} {}", pid,
                                             shell_word(fmt::format("{}={}", library, options))));
  if (!said.ok()) return said.error();
  // Some versions always end with 0.
  const std::string words = refusal_of(*said);
  if (said->exit_code != 0 || words.find("Exception") != std::string::npos ||
      words.starts_with("Error")) {
    return am_refused(device, app, *said);
  }
  const std::string until_there = fmt::format(
      "n=0; until [ -e {} ]; do n=$((n + 1)); [ $n -lt {} ] && [ -d /proc/{} ] || exit 1; sleep "
      "0.1; done; cat {}",
      answer, kLooksForAnswer, pid, answer);
  const auto answered =
      device.shell(fmt::format("run-as {} sh -c {}", app.package, shell_word(until_there)));
  if (!answered.ok()) return answered.error();
  const std::string_view line(answered->output);
  if (line.starts_with(patch::kAnswerAttached)) {
    return printable_sentence(line.substr(std::string_view(patch::kAnswerAttached).size()));
  }
  if (line.starts_with(patch::kAnswerFailed)) {
    const auto why = line.substr(std::string_view(patch::kAnswerFailed).size());
    return Error{Code::kUnsupported, fmt::format("{} cannot be recorded so: {}",
                                                 app_on(device, app), printable_sentence(why))};
  }
  return Error{Code::kUnavailable,
               app_on(device, app) +
                   ": the agent did not answer: `adb logcat` says why Android did not load it"};
}

}  // namespace collect::ctl
