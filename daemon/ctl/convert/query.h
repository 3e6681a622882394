// `collectctl query SQL [PATH…]`: a question about captures, answered by DuckDB's command line
// program, which is installed apart. The captures become tables of Parquet first, as `convert --to
// parquet` makes them; a directory of such tables is taken as it is.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "storage/export/exported_session.h"

namespace collect::ctl {

struct QueryOptions {
  std::string sql;                  // over the views of kParquetTables
  std::vector<std::string> inputs;  // captures, or one directory of tables
  exports::ExportSelection selection;
  std::string format = "table";  // or csv, json: how the engine prints
  std::string engine;            // path of duckdb
  bool progress = false;         // `err` is a terminal
};

// The engine's exit code; 2: it was not asked, and the reason was printed.
int query(const QueryOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
