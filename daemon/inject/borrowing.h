// A thread of a process that can be made to call pthread_create.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/inject/process_memory.h"
#include "daemon/inject/target.h"
#include "daemon/inject/traced_thread.h"

namespace collect::inject {

// Whether a shared object or an executable defines this dynamic symbol. True also where no one can
// say, because it is no ELF file, or has no table of sections.
bool defines(const std::string& path, const std::string& symbol);

// Tells where a thread may be borrowed: where it holds no lock of the C library and of no
// allocator.
class SafePoints {
 public:
  explicit SafePoints(const Target& target) : target_(target) {}
  // Blocked in a system call that allocators and the dynamic linker do not make; the rest only
  // where it `may_run`: in code of a module that is neither of these.
  bool is_safe(const user_regs_struct& registers, bool may_run);

 private:
  const Target& target_;
  std::map<std::string, bool> allocators_;  // module -> whether it defines malloc
};

}  // namespace collect::inject
