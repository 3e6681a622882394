// macOS and iOS.
#include <TargetConditionals.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>

#include "agent/platform/identity.h"
#include "agent/platform/loaded_objects.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

bool read_sysctl(const char* name, char* out, size_t out_bytes) {
  char text[256] = {};
  size_t bytes = sizeof text - 1;
  if (sysctlbyname(name, text, &bytes, nullptr, 0) != 0) return false;
  return copy_utf8(out, out_bytes, text, bytes) != 0;
}

}  // namespace

uint64_t pid_namespace() {
  return 0;
}

bool fill_random(uint8_t* out, size_t bytes) {
  arc4random_buf(out, bytes);
  return true;
}

void fill_system(collect_wire_Hello& hello) {
#if TARGET_OS_IPHONE
  hello.os = collect_wire_Os_OS_IOS;
#else
  hello.os = collect_wire_Os_OS_MACOS;
#endif
  char path[1024];
  const size_t length = read_executable_path(path, sizeof path);
  copy_utf8(hello.executable, sizeof hello.executable, path, length);
  const char* const slash = strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  copy_utf8(hello.process_name, sizeof hello.process_name, name, strlen(name));
  read_sysctl("kern.bootsessionuuid", hello.boot_id, sizeof hello.boot_id);
  utsname system{};
  const bool known = uname(&system) == 0;
  // "iPhone15,2" or "Mac14,9": on a phone hw.machine has it, on a Mac hw.model.
#if TARGET_OS_IPHONE
  constexpr char kModel[] = "hw.machine";
#else
  constexpr char kModel[] = "hw.model";
#endif
  if (!read_sysctl(kModel, hello.device_model, sizeof hello.device_model) && known) {
    copy_utf8(hello.device_model, sizeof hello.device_model, system.machine, sizeof system.machine);
  }
  if (known) {
    copy_utf8(hello.device_id, sizeof hello.device_id, system.nodename, sizeof system.nodename);
  }
}

}  // namespace collect::agent
