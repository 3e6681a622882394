#include "agent/shims/library_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/own_object.h"
#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"
#include "agent/ring/hooks/general_path.h"
#include "agent/ring/hooks/hooks_inline.h"
#include "agent/ring/hooks/unwinding.h"
#include "agent/ring/modules.h"
#include "formats/core/text/glob.h"

extern "C" const unsigned char collect_library_stubs[];

namespace collect::agent {
namespace {

constexpr uint64_t kStubBytes = 16;

// Each with six arguments at most, all of them integers or pointers, and such a result. Terminated,
// in one text: a pointer to each would take three times as much in the file.
constexpr char kNames[] =
    // May block. Those of kTries first.
    "pthread_mutex_lock\0pthread_mutex_timedlock\0pthread_mutex_clocklock\0"
    "pthread_rwlock_rdlock\0pthread_rwlock_wrlock\0sem_wait\0"
    "__poll_chk\0__read_chk\0__recv_chk\0accept\0accept4\0clock_nanosleep\0connect\0"
    "epoll_pwait\0epoll_wait\0fdatasync\0flock\0fsync\0nanosleep\0pause\0poll\0ppoll\0"
    "pread\0pread64\0pselect\0pthread_barrier_wait\0pthread_cond_clockwait\0"
    "pthread_cond_timedwait\0pthread_cond_wait\0pthread_"
    "join\0pwrite\0pwrite64\0read\0readv\0recv\0recvfrom\0recvmsg\0"
    "select\0sem_clockwait\0sem_timedwait\0send\0sendmsg\0sendto\0sleep\0usleep\0wait\0"
    "wait4\0waitid\0waitpid\0write\0writev\0"
    // Seldom block, or allocate, and are called too often to be recorded without being asked for.
    "fgets\0fread\0fwrite\0getline\0_ZdaPv\0_ZdlPv\0_ZdlPvm\0_Znam\0_Znwm\0aligned_alloc\0"
    "calloc\0free\0malloc\0posix_memalign\0realloc\0";
constexpr uint32_t kFunctions = COLLECT_LIBRARY_FUNCTIONS;
constexpr uint32_t kFrequent = 15;
constexpr uint32_t kBlocking = kFunctions - kFrequent;

// What takes the same if that needs no wait; "": nothing, it looks at its clock before the lock.
constexpr char kTries[] =
    "pthread_mutex_trylock\0pthread_mutex_trylock\0\0"
    "pthread_rwlock_tryrdlock\0pthread_rwlock_trywrlock\0sem_trywait";
constexpr uint32_t kMutexes = 3;
constexpr uint32_t kReadWriteLocks = 2;
constexpr uint32_t kLocks = 6;
using TryLock = int (*)(void* lock);

enum class Recorded : uint8_t { kNever, kUnlessBrief, kAlways };

struct LibraryFunction {
  const char* name = nullptr;
  uint64_t address = 0;  // 0: no object has it
  uint64_t id = 0;
  TryLock try_lock = nullptr;
  Recorded recorded = Recorded::kNever;
};
LibraryFunction functions[kFunctions];  // constant after the start

uint64_t stub_of(uint32_t index) {
  return reinterpret_cast<uint64_t>(collect_library_stubs) + kStubBytes * index;
}

uint64_t find(const char* name) {
  return reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, name));
}

// "on": what may block, unless it is brief. Else patterns with "," between them: every call of
// those functions.
Recorded wanted_for(const char* wanted, uint32_t index, const char* name) {
  if (strcmp(wanted, "on") == 0) {
    return index < kBlocking ? Recorded::kUnlessBrief : Recorded::kNever;
  }
  for (;; ++wanted) {
    const char* const end = strchr(wanted, ',');
    const size_t bytes = end == nullptr ? strlen(wanted) : static_cast<size_t>(end - wanted);
    if (matches_glob({wanted, bytes}, name)) return Recorded::kAlways;
    if (end == nullptr) return Recorded::kNever;
    wanted = end;
  }
}

void look_up_functions(const char* wanted) {
  const char* name = kNames;
  const char* next_try = kTries;
  for (uint32_t i = 0; i < kFunctions; ++i, name += strlen(name) + 1) {
    const char* const try_name = next_try;
    if (i < kLocks) next_try += strlen(next_try) + 1;
    LibraryFunction& function = functions[i];
    function.name = name;
    function.recorded = wanted_for(wanted, i, name);
    if (function.recorded == Recorded::kNever) continue;
    function.address = find(name);
    ModuleRange range;
    if (function.address == 0 || !module_find_known(function.address, range)) {
      function.recorded = Recorded::kNever;
      continue;
    }
    function.id = uint64_t{range.module_id} << 32 | (function.address - range.base);
    const bool tries = i < kLocks && function.recorded == Recorded::kUnlessBrief;
    function.try_lock = tries ? reinterpret_cast<TryLock>(find(try_name)) : nullptr;
  }
}

// What a loaded object imports.
struct Imports {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * tables[2] = {};  // of calls, of all else
  uint64_t bytes[2] = {};
  uint64_t relro_begin = 0;  // read-only since the dynamic linker has written it
  uint64_t relro_end = 0;
};

Imports read_imports(const LoadedObject& object) {
  Imports imports;
  const auto* segments = static_cast<const ElfW(Phdr)*>(object.headers);
  const ElfW(Dyn)* entry = nullptr;
  for (size_t i = 0; i < object.header_count; ++i) {
    const uint64_t begin = object.base + segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (segments[i].p_type == PT_GNU_RELRO) {
      imports.relro_begin = begin;
      imports.relro_end = begin + segments[i].p_memsz;
    }
  }
  // Not every dynamic linker adds the base here.
  const auto place = [&object](uint64_t value) {
    return value < object.base ? object.base + value : value;
  };
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uint64_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
      case DT_STRTAB:
        imports.names = reinterpret_cast<const char*>(place(value));
        break;
      case DT_SYMTAB:
        imports.symbols = reinterpret_cast<const ElfW(Sym)*>(place(value));
        break;
      case DT_JMPREL:
        imports.tables[0] = reinterpret_cast<const ElfW(Rela)*>(place(value));
        break;
      case DT_PLTRELSZ:
        imports.bytes[0] = value;
        break;
      case DT_RELA:
        imports.tables[1] = reinterpret_cast<const ElfW(Rela)*>(place(value));
        break;
      case DT_RELASZ:
        imports.bytes[1] = value;
        break;
      default:
        break;
    }
  }
  return imports;
}

#if defined(__x86_64__)
constexpr uint32_t kCallSlot = R_X86_64_JUMP_SLOT;
constexpr uint32_t kAddressSlot = R_X86_64_GLOB_DAT;
#else
constexpr uint32_t kCallSlot = R_AARCH64_JUMP_SLOT;
constexpr uint32_t kAddressSlot = R_AARCH64_GLOB_DAT;
#endif

// kFunctions: none that is recorded.
uint32_t function_named(const char* name) {
  for (uint32_t i = 0; i < kFunctions; ++i) {
    if (functions[i].recorded != Recorded::kNever && functions[i].name[0] == name[0] &&
        strcmp(functions[i].name, name) == 0) {
      return i;
    }
  }
  return kFunctions;
}

class WritableRelro {
 public:
  explicit WritableRelro(const Imports& imports) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    begin_ = imports.relro_begin & ~(page - 1);
    bytes_ = (imports.relro_end & ~(page - 1)) - begin_;
  }
  ~WritableRelro() {
    if (is_open_) (void)sys::mprotect(reinterpret_cast<void*>(begin_), bytes_, PROT_READ);
  }
  WritableRelro(const WritableRelro&) = delete;
  WritableRelro& operator=(const WritableRelro&) = delete;

  bool opens_for(uint64_t slot) {
    if (slot - begin_ >= bytes_ || is_open_) return true;
    is_open_ = sys::mprotect(reinterpret_cast<void*>(begin_), bytes_, PROT_READ | PROT_WRITE) == 0;
    return is_open_;
  }

 private:
  uint64_t begin_;
  uint64_t bytes_;
  bool is_open_ = false;
};

bool has_function(const LoadedObject& object) {
  for (const LibraryFunction& function : functions) {
    if (function.address - object.begin < object.end - object.begin) return true;
  }
  return false;
}

// Libraries that have one of the functions call their own, and must find it.
void redirect_imports(const LoadedObject& object, void* own) {
  if (object.begin == static_cast<const OwnObject*>(own)->begin || has_function(object) ||
      object.base == getauxval(AT_BASE)) {
    return;
  }
  const Imports imports = read_imports(object);
  if (imports.names == nullptr || imports.symbols == nullptr) return;
  WritableRelro relro(imports);
  for (int t = 0; t < 2; ++t) {
    const ElfW(Rela)* at = imports.tables[t];
    for (uint64_t left = imports.bytes[t] / sizeof *at; at != nullptr && left > 0; --left, ++at) {
      const uint64_t type = ELF64_R_TYPE(at->r_info);
      if (type != kCallSlot && type != kAddressSlot) continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(at->r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;  // its own
      const uint32_t index = function_named(imports.names + symbol.st_name);
      if (index == kFunctions) continue;
      auto* const slot = reinterpret_cast<uint64_t*>(object.base + at->r_offset);
      // Not bound yet, it leads into the object; anything else is in front of it.
      const uint64_t bound = __atomic_load_n(slot, __ATOMIC_RELAXED);
      const bool is_ours =
          bound == functions[index].address || bound - object.begin < object.end - object.begin;
      if (!is_ours || !relro.opens_for(reinterpret_cast<uint64_t>(slot))) continue;
      __atomic_store_n(slot, stub_of(index), __ATOMIC_RELAXED);
    }
  }
}

void redirect_all(uint64_t, uint64_t, void* own) {
  for_each_object(redirect_imports, own);
}

// What a stub keeps of its call, on its stack: library_stubs.S has the offsets.
struct LibraryCall {
  uint64_t arguments[6];
  uint64_t index;
  uint64_t result;
  LockWait lock_wait;
};
static_assert(offsetof(LibraryCall, index) == 48 && offsetof(LibraryCall, result) == 56 &&
              offsetof(LibraryCall, lock_wait) == 64 && sizeof(LibraryCall) == 88);

HookFrame frame_of(const LibraryFunction& function, LibraryCall* call) {
  HookFrame frame;
  frame.place = reinterpret_cast<uint64_t>(call);
  frame.library_function = function.id;
  frame.is_left_out_if_brief = function.recorded == Recorded::kUnlessBrief;
  frame.lock_wait = &call->lock_wait;
  return frame;
}

// The number of the thread that has the lock; 0: none has, or that is not to be seen.
uint32_t owner_of(uint32_t index, uint64_t lock) {
#if defined(__GLIBC__)
  if (index >= kMutexes) {
    const auto& data = reinterpret_cast<const pthread_rwlock_t*>(lock)->__data;
    return static_cast<uint32_t>(__atomic_load_n(&data.__cur_writer, __ATOMIC_RELAXED));
  }
  const auto& data = reinterpret_cast<const pthread_mutex_t*>(lock)->__data;
  // Who takes it writes its number a moment later.
  constexpr int kLooks = 100;
  for (int i = 0; i < kLooks; ++i) {
    const int owner = __atomic_load_n(&data.__owner, __ATOMIC_RELAXED);
    if (owner != 0 || __atomic_load_n(&data.__lock, __ATOMIC_RELAXED) == 0) {
      return static_cast<uint32_t>(owner);
    }
  }
#endif
  (void)index;
  (void)lock;
  return 0;
}

LockWait lock_wait_of(uint32_t index, const LibraryFunction& function, uint64_t lock) {
  if (index >= kMutexes + kReadWriteLocks) return {};
  const uint32_t owner = owner_of(index, lock);
  // Without a look at whether it is free, an owner alone says that it is not.
  const bool is_taken = function.try_lock != nullptr || (owner != 0 && owner != os_thread_id());
  return {is_taken ? lock : 0, 0, owner};
}

bool is_taken(int result) {
  return result == 0 || result == EOWNERDEAD;
}

}  // namespace

void redirect_library_calls(const char* wanted) {
  if (wanted[0] == '\0') return;
  look_up_functions(wanted);
  (void)dlerror();  // what was not found is no one's business
  OwnObject own = find_own_object();
  with_objects(redirect_all, &own);
}

}  // namespace collect::agent

namespace agent = collect::agent;

extern "C" {

// What the stub does: 0 passes on to the function, 1 calls it and comes back, 2 returns `value`.
struct Entered {
  uint64_t value;
  uint64_t what;
};

[[gnu::visibility("hidden")]] Entered collect_library_enter(uint32_t index,
                                                            agent::LibraryCall* call) {
  const agent::LibraryFunction& function = agent::functions[index];
  if (function.recorded == agent::Recorded::kNever || !agent::follows_this_thread() ||
      agent::tls_stream->busy.load(std::memory_order_relaxed) != 0) {
    return {function.address, 0};
  }
  if (function.try_lock != nullptr) {
    const int saved_errno = errno;
    const int result = function.try_lock(reinterpret_cast<void*>(call->arguments[0]));
    if (agent::is_taken(result)) return {static_cast<uint64_t>(result), 2};
    errno = saved_errno;
  }
  call->lock_wait = agent::lock_wait_of(index, function, call->arguments[0]);
  agent::general_event(agent::tls_stream, function.address, collect::atf::EventKind::kCall,
                       agent::frame_of(function, call));
  return {function.address, 1};
}

[[gnu::visibility("hidden")]] void collect_library_leave(uint32_t index, agent::LibraryCall* call) {
  const agent::LibraryFunction& function = agent::functions[index];
  if (!agent::follows_this_thread()) return;
  agent::general_event(agent::tls_stream, function.address, collect::atf::EventKind::kReturn,
                       agent::frame_of(function, call));
}

}  // extern "C"
