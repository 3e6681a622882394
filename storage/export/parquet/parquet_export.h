// Sessions as tables of Apache Parquet: sessions, threads, functions, calls, events, and functions
// by second, a file each. formats/parquet/TABLES.md has their columns. Streams: memory grows with
// functions, open calls and one row group of each table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "formats/core/result.h"
#include "storage/convert/convert_log.h"
#include "storage/export/exported_session.h"

namespace collect::exports {

// Their names; each is a file NAME.parquet. First those of kWithoutRows.
inline constexpr const char* kParquetTables[] = {
    "functions",           "threads", "sessions", "function_seconds",
    "function_histograms", "calls",   "events"};
inline constexpr size_t kTablesWithoutRows = 5;

enum class ParquetTables : uint8_t {
  kAll,
  kWithoutRows,  // of each call and event: what is small
};

// Into the directory, which is made; files of these names in it are replaced, each as a whole, once
// all of them are complete and `check`, which is asked then, has nothing against it.
Status export_parquet(ExportedSessions& sessions, ParquetTables which, const std::string& directory,
                      const std::function<Status()>& check, convert::ConvertLog& log);

}  // namespace collect::exports
