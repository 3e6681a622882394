#include "agent/dynamic/plan_modules.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/crc32c.h"
#include "agent/dynamic/planned_jumps.h"
#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

PlannedModule found[kMaxPlannedModules];
uint32_t found_count = 0;

void note(const LoadedObject& object, void*) {
  if (found_count == kMaxPlannedModules) return;
  PlannedModule& one = found[found_count];
  one = PlannedModule{};
  one.build_id_bytes = read_build_id(object, one.build_id, sizeof one.build_id);
  one.base = object.base;
  one.begin = object.begin;
  one.end = object.end;
  one.segments = static_cast<const ElfW(Phdr)*>(object.headers);
  one.segment_count = object.header_count;
  one.is_program = object.path[0] == '\0';
  if (one.is_program) {
    (void)read_executable_path(one.path, sizeof one.path);
  } else {
    Text(one.path, sizeof one.path).add(object.path);
  }
  if (one.build_id_bytes == 0) {
    struct stat status{};
    if (sys::stat(one.path, &status) != 0) return;
    one.device = status.st_dev;
    one.inode = status.st_ino;
  }
  ++found_count;
}

void note_all(uint64_t, uint64_t, void*) {
  for_each_object(note, nullptr);
}

struct Wanted {
  const PlannedModule& module;
  bool is_there = false;
};

void look_for(const LoadedObject& object, void* argument) {
  auto& wanted = *static_cast<Wanted*>(argument);
  const PlannedModule& module = wanted.module;
  if (object.base == module.base && object.headers == module.segments &&
      strcmp(object.path, module.path) == 0) {
    wanted.is_there = true;
  }
}

void look_at_all(uint64_t, uint64_t, void* argument) {
  for_each_object(look_for, argument);
}

bool is_code(const PlannedModule& module, uint64_t address, uint64_t bytes) {
  for (size_t i = 0; i < module.segment_count; ++i) {
    const ElfW(Phdr)& one = module.segments[i];
    if (one.p_type == PT_LOAD && (one.p_flags & (PF_X | PF_W)) == PF_X && address >= one.p_vaddr &&
        address + bytes <= one.p_vaddr + one.p_filesz) {
      return true;
    }
  }
  return false;
}

}  // namespace

void list_planned_modules() {
  found_count = 0;
  with_objects(note_all, nullptr);
}

uint32_t planned_modules() {
  return found_count;
}

const PlannedModule& planned_module(uint32_t index) {
  return found[index];
}

bool is_loaded(const PlannedModule& module) {
  Wanted wanted{module};
  with_objects(look_at_all, &wanted);
  return wanted.is_there;
}

const char* why_not_of(const PlannedModule& module, const patch::PlanView& plan) {
  const patch::PlanHeader& header = plan.header();
  if (header.crc != crc32c(plan.checksummed(), 0)) return "its checksum does not match";
  if (header.processor != static_cast<uint32_t>(kPlanProcessor))
    return "it is for another processor";
  if (header.build_id_bytes != module.build_id_bytes ||
      memcmp(header.build_id, module.build_id, module.build_id_bytes) != 0 ||
      header.image_bytes != module.end - module.base) {
    return "it is for another build";
  }
  for (uint32_t i = 0; i < header.site_count; ++i) {
    const patch::PlanSite site = plan.site(i);
    if (!is_code(module, site.address, site.bytes)) return "it has a window outside the code";
    const auto* there = reinterpret_cast<const uint8_t*>(module.base + site.address);
    if (memcmp(there, site.original, site.bytes) != 0) {
      return "the module's code is not what the plan was made for";
    }
  }
  return nullptr;
}

}  // namespace collect::agent
