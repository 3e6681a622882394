// The names of a session's functions: which functions occur in what is stored, so that they can be
// looked up after the seal, or names that were known before.
//
// Owned by a Session, used on its storage thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/page.h"
#include "storage/model/function_set.h"
#include "storage/session/live_manifest.h"
#include "storage/thread/thread_writer.h"

namespace collect::storage {

class SessionSymbols {
 public:
  // Unless they are `wanted` no one is going to name functions, and none are gathered.
  SessionSymbols(LiveManifest& live, bool wanted) : live_(live), wanted_(wanted) {}

  // Index pages that were stored just now: they are still in the processor's cache, so sealing need
  // not read the files again.
  void add(std::span<const Page> pages);
  // The places of samples.
  void add(std::span<const Stall> switches);
  // All functions in the index file of a thread.
  void add_stored(ThreadWriter& writer);
  // Nothing is to be looked up.
  void adopt(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules, SymbolsState state);
  // Before the last manifest, which says whether there is something to be looked up.
  void finish();
  // As Session::functions().
  std::vector<uint64_t> functions() const { return functions_.sorted(); }

 private:
  LiveManifest& live_;
  const bool wanted_;
  FunctionSet functions_;
  bool known_ = false;  // adopted
};

}  // namespace collect::storage
