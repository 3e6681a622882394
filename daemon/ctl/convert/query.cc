#include "daemon/ctl/convert/query.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/run_program.h"
#include "daemon/ctl/terminal/json.h"
#include "storage/export/parquet/parquet_export.h"
#include "storage/fs/scratch_directory.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr int kExitNotAsked = 2;

bool is_directory_of_tables(const std::string& path) {
  std::error_code ignored;
  for (const char* table : exports::kParquetTables) {
    if (!fs::is_regular_file(fmt::format("{}/{}.parquet", path, table), ignored)) return false;
  }
  return true;
}

std::string quoted_sql(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

std::string views_of(const std::string& directory) {
  std::string sql;
  for (const char* table : exports::kParquetTables) {
    sql += fmt::format("CREATE VIEW {} AS SELECT * FROM read_parquet({}); ", table,
                       quoted_sql(fmt::format("{}/{}.parquet", directory, table)));
  }
  return sql;
}

}  // namespace

int query(const QueryOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{false, out, err};
  std::string tables;
  storage::Leftover scratch;
  if (options.inputs.size() == 1 && is_directory_of_tables(options.inputs[0])) {
    tables = options.inputs[0];
    if (options.selection.is_part() || !options.selection.functions.empty()) {
      return answer.refuse_briefly(
          {Code::kInvalidArgument,
           "--from, --until, --thread and --function are for captures: of tables, WHERE chooses"},
          kExitNotAsked);
    }
  } else {
    auto made = storage::make_scratch_directory("collectctl_query");
    if (!made.ok()) return answer.refuse_briefly(made.error(), kExitNotAsked);
    scratch = std::move(*made);
    tables = scratch.path() + "/tables";
    ConvertOptions conversion;
    conversion.inputs = options.inputs;
    conversion.to = exports::Target::kParquet;
    conversion.output = tables;
    conversion.selection = options.selection;
    conversion.look_names_up = true;
    conversion.progress = options.progress;
    std::ostringstream report;  // what was made is no answer to the question
    if (convert(conversion, report, err) == kExitNotAsked) return kExitNotAsked;
    if (!is_directory_of_tables(tables)) return 1;  // nothing matched, as was printed
  }
  std::vector<std::string> command = {options.engine};
  if (options.format != "table") command.push_back("-" + options.format);
  command.emplace_back("-c");
  command.push_back(views_of(tables) + options.sql);
  const auto code = run_program(command);
  if (!code.ok()) return answer.refuse_briefly(code.error(), kExitNotAsked);
  return *code;
}

}  // namespace collect::ctl
