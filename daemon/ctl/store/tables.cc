#include "daemon/ctl/store/tables.h"

#include <fmt/core.h>

#include <iterator>
#include <memory>
#include <span>

#include "storage/export/parquet/parquet_export.h"
#include "storage/fs/scratch_directory.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

Status make(const storage::SessionPath& session_path, exports::ParquetTables which,
            const std::string& directory) {
  const auto trace = read::open_trace(session_path.directory);
  if (!trace.ok()) return trace.error();
  auto session = exports::ExportedSession::open(*trace, {});
  if (!session.ok()) return session.error();
  exports::ExportedSessions sessions;
  sessions.push_back(std::move(*session));
  convert::ConvertLog log;
  return exports::export_parquet(sessions, which, directory, [] { return Status(); }, log);
}

// A fault of this machine, not of the session.
bool may_pass(Code code) {
  return code == Code::kNoSpace || code == Code::kIo || code == Code::kExhausted ||
         code == Code::kPermission;
}

}  // namespace

upload::WantedTables wanted_tables(upload::StoreTables which) {
  upload::WantedTables wanted;
  if (which == upload::StoreTables::kOff) return wanted;
  const bool all = which == upload::StoreTables::kAll;
  for (const char* name :
       std::span(exports::kParquetTables)
           .first(all ? std::size(exports::kParquetTables) : exports::kTablesWithoutRows)) {
    wanted.names.push_back(std::string(name) + ".parquet");
  }
  wanted.make = [all](const storage::SessionPath& session_path) -> Result<upload::TableFiles> {
    auto scratch = storage::make_scratch_directory("collectctl_tables");
    if (!scratch.ok()) return scratch.error();
    const auto keeper = std::make_shared<storage::Leftover>(std::move(*scratch));
    const Status made = make(
        session_path, all ? exports::ParquetTables::kAll : exports::ParquetTables::kWithoutRows,
        keeper->path());
    if (made.ok()) return upload::TableFiles{keeper->path(), keeper};
    const Error& error = made.error();
    return Error{
        may_pass(error.code) ? error.code : Code::kInvalidArgument,
        fmt::format("{} is in the store, without tables: {}", session_path.name, error.message)};
  };
  return wanted;
}

}  // namespace collect::ctl
