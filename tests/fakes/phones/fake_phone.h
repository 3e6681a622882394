// A phone made of a folder: Android's commands as scripts that come first in a real shell's PATH,
// its apps and properties as files. FakeAdbServer runs its shell and takes its files.
//
//   bin/          getprop setprop run-as pm am cmd pidof dumpsys logcat logwrapper
//   props/NAME    a property
//   tmp/          what a command calls /data/local/tmp
//   log           what logcat follows
//   apps/PACKAGE/ data/, code/, program (what `am start` runs), environment (for that), abi,
//                 debuggable, pid while it runs, attach_agent: the arguments of `am attach-agent`
//                 last, for a program that does what Android's runtime would
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace collect::fakes {

class FakePhoneFolder {
 public:
  static constexpr char kPhoneTemporary[] = "/data/local/tmp";
  // A file PATH that only the phone has, and not this machine, is PATH and this.
  static constexpr char kOnPhone[] = ".on_phone";

  // Below /tmp, because a property holds 91 bytes; removed at the end.
  FakePhoneFolder();
  ~FakePhoneFolder();
  FakePhoneFolder(const FakePhoneFolder&) = delete;
  FakePhoneFolder& operator=(const FakePhoneFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  void set_property(const std::string& name, const std::string& value);
  std::string property(const std::string& name) const;
  // `program` is a line of shell; `environment` lines of NAME=value.
  void install(const std::string& package, const std::string& program,
               const std::string& environment = "");
  std::string app(const std::string& package, const std::string& name) const {
    return path_ + "/apps/" + package + "/" + name;
  }
  void write(const std::string& path, const std::string& text) const;
  std::string read(const std::string& path) const;
  // Whether nothing of collectctl is left: no file below tmp and the apps' data, no property.
  // `root` goes before the phone's path: it is seen as a process in another root sees it.
  std::string leftovers(const std::string& root = "") const;
  void end_apps() const;

 private:
  std::string path_;
};

// The number of the app's process that listens as collect_agent_N is one of this phone's.
bool owns_agent_socket(const std::string& folder, const std::string& name);

// Serves "shell,v2,raw:command" on `client` until the command or the connection ends.
void serve_phone_shell(int client, const std::string& folder, const std::string& command,
                       const std::function<bool()>& goes_on);

struct PushLimits {
  uint64_t space = UINT64_MAX;  // then the device says that there is none left
  uint64_t cable = UINT64_MAX;  // then the connection ends
};
// Serves "sync:"; true when the cable's bytes were used up.
bool serve_phone_sync(int client, const std::string& folder, const PushLimits& limits);

}  // namespace collect::fakes
