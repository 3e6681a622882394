#include "daemon/fleet/libpq.h"

#include <dlfcn.h>

#include <string>

namespace collect::fleet {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

Result<Libpq> load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{Code::kUnsupported, std::string(kLibrary) + " cannot be loaded: " + ::dlerror() +
                                         "; install Debian's package libpq5"};
  }
  Libpq functions;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) missing = name;
  };
#define COLLECT_LIBPQ_FIND(name) find(#name, functions.name);
  COLLECT_LIBPQ_FUNCTIONS(COLLECT_LIBPQ_FIND)
#undef COLLECT_LIBPQ_FIND
  if (missing != nullptr) {
    return Error{Code::kUnsupported, std::string(kLibrary) + " has no " + missing +
                                         "; install a version of PostgreSQL 10 or later"};
  }
  return functions;
}

}  // namespace

Result<const Libpq*> load_libpq() {
  static const Result<Libpq> loaded = load();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

}  // namespace collect::fleet
