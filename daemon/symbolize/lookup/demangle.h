// Names of C++ and Rust, bounded. A mangled name of 278 bytes may stand for 436 MB of text, and
// __cxa_demangle makes all of it. This one hands out text as it comes (libstdc++'s demangler with a
// callback, which takes no memory but the stack), stops at kMaxSymbolNameBytes, and gives a name up
// after kDemangleTicks of CPU time.
#pragma once

#include <string>
#include <string_view>

namespace collect::symbolize {

// The name as C++ or Rust writes it, at most kMaxSymbolNameBytes; a longer one is cut and ends in
// "...". What is no mangled name, or can't be demangled within the bounds, comes back as it is, cut
// the same way. One thread at a time, process-wide.
std::string demangled(std::string_view linkage_name);

// While one lives, demangled() is bounded in time too. Takes the process's SIGVTALRM and its
// virtual timer: for programs of one thread.
class DemangleClock {
 public:
  DemangleClock();
  ~DemangleClock();
  DemangleClock(const DemangleClock&) = delete;
  DemangleClock& operator=(const DemangleClock&) = delete;
};

}  // namespace collect::symbolize
