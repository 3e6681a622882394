// macOS and iOS. dyld reports every image that comes and goes, on the thread that loads it and
// with its own lock held, so nothing here waits in those calls: they count. An image that is
// unloaded while a scan looks at its header would take the header away; libraries of apps stay.
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <mach/mach.h>
#include <sched.h>
#include <string.h>

#include <atomic>

#include "agent/platform/loaded_objects.h"
#include "agent/ring/state.h"

namespace collect::agent {
namespace {

std::atomic<uint64_t> loads{0};
std::atomic<uint64_t> unloads{0};
std::atomic<uint64_t> seen{0};  // loads + unloads at the last scan
std::atomic<bool> registered{false};
std::atomic<uint32_t> scanning{0};  // never taken in dyld's calls to us

void image_came(const mach_header*, intptr_t) {
  loads.fetch_add(1, std::memory_order_release);
}
// What threads remember of it must not outlive it: another image may be loaded there.
void image_went(const mach_header*, intptr_t) {
  unloads.fetch_add(1, std::memory_order_release);
  (void)change_state(0, 0);
}

// Both are called at once for what is there already.
void register_once() {
  if (registered.exchange(true)) return;
  _dyld_register_func_for_add_image(image_came);
  _dyld_register_func_for_remove_image(image_went);
}

template <class Visit>
void for_each_command(const void* headers, Visit visit) {
  const auto* header = static_cast<const mach_header_64*>(headers);
  const auto* at = reinterpret_cast<const uint8_t*>(header + 1);
  for (uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* command = reinterpret_cast<const load_command*>(at);
    visit(*command);
    at += command->cmdsize;
  }
}

}  // namespace

void with_objects(void (*scan)(uint64_t, uint64_t, void*), void* argument) {
  register_once();
  uint32_t free = 0;
  while (!scanning.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
    free = 0;
    sched_yield();
  }
  const uint64_t came = loads.load(std::memory_order_acquire);
  const uint64_t went = unloads.load(std::memory_order_acquire);
  scan(came, went, argument);
  seen.store(came + went, std::memory_order_relaxed);
  scanning.store(0, std::memory_order_release);
}

void for_each_object(void (*visit)(const LoadedObject&, void*), void* argument) {
  const uint32_t count = _dyld_image_count();
  for (uint32_t i = 0; i < count; ++i) {
    const mach_header* const header = _dyld_get_image_header(i);
    const char* const path = _dyld_get_image_name(i);
    if (header == nullptr || header->magic != MH_MAGIC_64) continue;
    const auto slide = static_cast<uint64_t>(_dyld_get_image_vmaddr_slide(i));
    LoadedObject object{slide, UINT64_MAX, 0, path != nullptr ? path : "", header, 1};
    for_each_command(header, [&](const load_command& command) {
      if (command.cmd != LC_SEGMENT_64) return;
      const auto& segment = reinterpret_cast<const segment_command_64&>(command);
      // In the system's shared cache the data of all images is apart from their code.
      if ((segment.initprot & VM_PROT_EXECUTE) == 0) return;
      const uint64_t begin = slide + segment.vmaddr;
      if (begin < object.begin) object.begin = begin;
      if (begin + segment.vmsize > object.end) object.end = begin + segment.vmsize;
    });
    if (object.end > object.begin) visit(object, argument);
  }
}

bool objects_changed() {
  return loads.load(std::memory_order_acquire) + unloads.load(std::memory_order_acquire) !=
         seen.load(std::memory_order_relaxed);
}

uint32_t read_build_id(const LoadedObject& object, uint8_t* out, uint32_t out_bytes) {
  uint32_t bytes = 0;
  for_each_command(object.headers, [&](const load_command& command) {
    if (command.cmd != LC_UUID) return;
    const auto& uuid = reinterpret_cast<const uuid_command&>(command);
    bytes = sizeof uuid.uuid < out_bytes ? sizeof uuid.uuid : out_bytes;
    memcpy(out, uuid.uuid, bytes);
  });
  return bytes;
}

size_t read_executable_path(char* out, size_t out_bytes) {
  auto bytes = static_cast<uint32_t>(out_bytes);
  if (_NSGetExecutablePath(out, &bytes) != 0) out[0] = '\0';
  return strnlen(out, out_bytes);
}

}  // namespace collect::agent
