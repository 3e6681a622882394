// What is changed on a phone for a recording of one app, and how all of it is undone: by the
// command that did it, or, when that was killed, by the next one.
//
//   /data/local/tmp/collect/PACKAGE.lock   held by a shell of ours as long as we live
//   /data/local/tmp/collect/PACKAGE.json   the record: the commands that undo what was done
//   /data/local/tmp/collect/PACKAGE.so     the agent, on its way into the app's data
//   DATA/collect/                          agent, variables, token and script, in the app's data;
//                                          or agent, plans and its answer, where the app runs
//   DATA/cache/collect/                    the agent's spool
//   property wrap.PACKAGE                  starts the app through the script
//
// The record is there before the first change, and goes after the last one was undone. A command
// that undoes may run twice, or with nothing to undo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/android/app/android_app.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr char kPhoneFolder[] = "/data/local/tmp/collect";
inline constexpr size_t kMaxPropertyBytes = 91;  // of a value, as Android has it
inline constexpr int kLockAttempts = 5;

// The only one for a package on a device; the lock goes with the object, and with the cable.
class AppLock {
 public:
  // kAlreadyExists: another collectctl has it.
  static Result<std::unique_ptr<AppLock>> take(const AdbDevice& device, const std::string& package);

 private:
  explicit AppLock(std::shared_ptr<ShellStream> shell) : shell_(std::move(shell)) {}

  std::shared_ptr<ShellStream> shell_;
};

// Undoes what the record says; false: there is none. With the lock held, which stays. What can't be
// undone stays in the record.
Result<bool> undo_by_record(const AdbDevice& device, const std::string& package);

// The lock's file and our folder, where there is no record (any more); with the lock held.
Status remove_lock(const AdbDevice& device, const std::string& package);

// How the agent comes into the app.
enum class AgentEntry : uint8_t {
  kStart,    // with the app, which is started again
  kRunning,  // Android's runtime loads it while the app runs: no property is set
};

class AppPreparation {
 public:
  // `lock` is held by the caller as long as this lives.
  AppPreparation(const AdbDevice& device, AndroidApp app, AgentEntry entry = AgentEntry::kStart)
      : device_(device),
        app_(std::move(app)),
        sets_property_(entry == AgentEntry::kStart && !app_.has_wrap) {}

  std::string agent_folder() const { return app_.data_directory + "/collect"; }
  std::string agent_path() const { return agent_folder() + "/libcollect_agent.so"; }
  std::string plans_folder() const { return agent_folder() + "/plans"; }
  std::string answer_path() const { return agent_folder() + "/answer"; }
  std::string token_path() const { return agent_folder() + "/token"; }
  std::string spool_folder() const { return app_.data_directory + "/cache/collect"; }

  // Writes the record; nothing is changed before. kLimit: the property can't hold the script's
  // path.
  Status begin();
  // `library` is a file of this machine.
  Status copy_agent(const std::string& library, const AdbDevice::OnProgress& on_progress);
  // The patch plans in `folder`, of this machine.
  Status copy_plans(const std::string& folder);
  Status write_token(const std::string& token);
  // "NAME=value" each.
  Status write_variables(const std::vector<std::string>& variables);
  // The app's next start is through our script. kPermission: the phone refuses the property.
  Status set_wrap();
  // By the record, and the lock's file; all of it is tried, the first error is returned.
  Status undo();

 private:
  std::string wrap_value() const;
  Status into_app(const std::string& name, const std::string& text);
  Status copy_file(const std::string& path, const std::string& name,
                   const AdbDevice::OnProgress& on_progress);

  const AdbDevice& device_;
  const AndroidApp app_;
  const bool sets_property_;
};

}  // namespace collect::ctl
