#include "storage/session/session_symbols.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace collect::storage {

void SessionSymbols::add(std::span<const Page> pages) {
  if (!wanted_) return;
  for (const Page& page : pages) functions_.add_events(page.bytes);
}

void SessionSymbols::add(std::span<const Stall> switches) {
  if (!wanted_) return;
  for (const Stall& one : switches) {
    if (one.kind == StallKind::kSample && one.place != 0) functions_.add(one.place);
  }
}

void SessionSymbols::add_stored(ThreadWriter& writer) {
  if (!wanted_) return;
  const Status seen = writer.collect_functions(functions_);
  // Names are a convenience: the session is whole without them.
  if (!seen.ok()) (void)live_.note("symbols: " + to_string(seen.error()));
}

void SessionSymbols::adopt(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules,
                           SymbolsState state) {
  live_.manifest.symbols = std::move(symbols);
  live_.manifest.module_symbols = std::move(modules);
  live_.manifest.symbols_state = state;
  known_ = true;
}

void SessionSymbols::finish() {
  if (!wanted_ || known_ || functions_.size() == 0) return;
  live_.manifest.symbols_state = SymbolsState::kPending;
  if (functions_.overflowed()) {
    (void)live_.note(fmt::format("symbols: more than {} functions", kMaxFunctionIds));
  }
}

}  // namespace collect::storage
