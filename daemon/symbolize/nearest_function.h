// The function that a word may mean which is none of a module.
#pragma once

#include <atomic>
#include <string>

#include "daemon/symbolize/symbolizer.h"

namespace collect::symbolize {

// The name, without namespace and arguments, that is nearest to the word: of the first
// kMaxManifestSymbols functions of the module's file. Empty: none is near, the word is a pattern or
// an id, or the file has no names.
std::string nearest_function(const Symbolizer& symbolizer, const storage::ModuleInfo& module,
                             const std::string& word, const std::atomic<bool>* stop = nullptr);

}  // namespace collect::symbolize
