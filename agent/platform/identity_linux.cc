// Linux, and Android, whose file system is the same in what is asked here.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/platform/identity.h"
#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"
#include "agent/text.h"

#if defined(__ANDROID__)
#include <sys/system_properties.h>
#endif

namespace collect::agent {
namespace {

// The first line of a file, as a string of the message. False: it can't be read, or is empty.
bool read_line(const char* path, char* out, size_t out_bytes) {
  char text[512];
  const size_t size = read_file(path, text, sizeof text);
  size_t length = 0;
  while (length < size && text[length] != '\n' && text[length] != '\0') ++length;
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\r')) --length;
  return copy_utf8(out, out_bytes, text, length) != 0;
}

#if defined(__ANDROID__)
bool read_property(const char* name, char* out, size_t out_bytes) {
  char value[PROP_VALUE_MAX] = {};
  const int length = __system_property_get(name, value);
  return length > 0 && copy_utf8(out, out_bytes, value, static_cast<size_t>(length)) != 0;
}
#else
bool read_property(const char*, char*, size_t) {
  return false;  // a program for any Linux has no library that could be asked
}
#endif

// A static program for Linux runs on a phone too.
bool is_android() {
#if defined(__ANDROID__)
  return true;
#else
  return sys::access("/dev/__properties__", F_OK) == 0 &&
         sys::access("/system/bin/linker64", F_OK) == 0;
#endif
}

}  // namespace

uint64_t pid_namespace() {
  struct stat found{};
  return sys::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

bool fill_random(uint8_t* out, size_t bytes) {
  size_t drawn = 0;
  while (drawn < bytes) {
    const long got = sys::call(SYS_getrandom, out + drawn, bytes - drawn, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;  // a sandbox
    drawn += static_cast<size_t>(got);
  }
  return true;
}

void fill_system(collect_wire_Hello& hello) {
  hello.os = is_android() ? collect_wire_Os_OS_ANDROID : collect_wire_Os_OS_LINUX;
  read_line("/proc/self/comm", hello.process_name, sizeof hello.process_name);
  read_line("/proc/sys/kernel/random/boot_id", hello.boot_id, sizeof hello.boot_id);
  if (!read_property("ro.product.model", hello.device_model, sizeof hello.device_model) &&
      !read_line("/sys/class/dmi/id/product_name", hello.device_model, sizeof hello.device_model)) {
    read_line("/proc/device-tree/model", hello.device_model, sizeof hello.device_model);
  }
  char path[1024];
  const size_t length = read_executable_path(path, sizeof path);
  copy_utf8(hello.executable, sizeof hello.executable, path, length);
  // Apps may not read the serial number; the shell may.
  if (read_property("ro.serialno", hello.device_id, sizeof hello.device_id)) return;
  utsname name{};
  if (sys::uname(&name) == 0) {
    copy_utf8(hello.device_id, sizeof hello.device_id, name.nodename, sizeof name.nodename);
  }
}

}  // namespace collect::agent
