// What an interrupted writer may leave in the directory of a thread; session_layout.h has the other
// names.
#pragma once

#include "storage/model/session_layout.h"

namespace collect::storage {

inline constexpr char kIndexTemporaryFile[] = "index.atf.new";               // thread_repair.h
inline constexpr char kStreamJournalTemporaryFile[] = "stream.journal.new";  // the same
inline constexpr const char* kThreadTemporaryFiles[] = {
    kIndexTemporaryFile, kDetailTemporaryFile, kStreamJournalTemporaryFile, kLodTemporaryFile};

}  // namespace collect::storage
