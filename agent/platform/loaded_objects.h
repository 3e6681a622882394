// The executable and the libraries of this process, as the dynamic linker has them now.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::agent {

struct LoadedObject {
  uint64_t base;   // load bias: an address minus this is the symbol's value in the file
  uint64_t begin;  // of its lowest segment; of its code alone where segments are apart
  uint64_t end;
  const char* path;     // terminated; empty: see read_executable_path
  const void* headers;  // of its program (ELF), or its own (Mach-O)
  size_t header_count;
};

// Calls `scan` once while no other thread is in here; it may call for_each_object. The two numbers
// change when something was loaded or unloaded; both are kObjectsUncounted where no one counts.
inline constexpr uint64_t kObjectsUncounted = UINT64_MAX;
void with_objects(void (*scan)(uint64_t loads, uint64_t unloads, void* argument), void* argument);

// From `scan` alone. The main executable comes first.
void for_each_object(void (*visit)(const LoadedObject& object, void* argument), void* argument);

// Whether objects came or went since with_objects was last called, where the system says so by
// itself. Any thread. Elsewhere false: an unknown address and our dlclose show it.
bool objects_changed();

// Identity of its build: the GNU build id, or LC_UUID. Returns its size, 0 for none.
uint32_t read_build_id(const LoadedObject& object, uint8_t* out, uint32_t out_bytes);

// The main executable's file, terminated; empty when it is not known. Returns the length.
size_t read_executable_path(char* out, size_t out_bytes);

}  // namespace collect::agent
