// An app that runs, as far as one has to know it to change its code: its process, what is loaded
// there, and plans for that.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/android/app/android_app.h"
#include "daemon/ctl/record/android/app/library_pull.h"
#include "daemon/patch/module_plans.h"
#include "formats/core/result.h"

namespace collect::ctl {

// The only one whose code can be changed while it runs and no one can stop it.
inline constexpr char kChangeableAbi[] = "arm64-v8a";

struct AppProcess {
  pid_t pid = 0;
  std::vector<std::string> libraries;  // the app's own, by their paths on the phone
  bool has_libraries_in_apk = false;   // others, which Android has not unpacked
  bool has_agent = false;
};

// kNotFound: it does not run.
Result<pid_t> find_process(const AdbDevice& device, const std::string& package);
// kPermission: run-as may not look at it.
Result<AppProcess> look_at_process(const AdbDevice& device, const AndroidApp& app);

// Plans for the app's own libraries whose path or name matches one of `patterns`; for all, where it
// is patch::kProgramItself. They are copied here by `pull`. kUnsupported, kNotFound: there are
// none.
Result<patch::ModulePlans> plans_of_app(const AppProcess& process, const AndroidApp& app,
                                        const std::vector<std::string>& patterns,
                                        LibraryPull& pull);

// Has Android's runtime load the agent into the process, with the "NAME=value" settings in
// `variables`, and waits for its answer, which is in `answer`, a file in the app's data. The
// agent's status; kPermission: Android refuses; kUnsupported: the agent's reason.
Result<std::string> attach_agent_to(const AdbDevice& device, const AndroidApp& app, pid_t pid,
                                    const std::string& library, const std::string& answer,
                                    const std::vector<std::string>& variables);

}  // namespace collect::ctl
