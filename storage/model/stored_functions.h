// The function ids of a session that is on disk, to name them later.
#pragma once

#include <atomic>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/function_set.h"

namespace collect::storage {

// Reads every index file of the session once; one that cannot be read is left out. kCancelled when
// `stop`, which may be null, was set meanwhile.
Result<FunctionSet> stored_functions(Fs& fs, const std::string& directory,
                                     const std::atomic<bool>* stop);

}  // namespace collect::storage
