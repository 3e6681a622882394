#include "daemon/ctl/offline/query.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "daemon/ctl/export/parquet_export.h"
#include "daemon/ctl/offline/convert_command.h"
#include "daemon/ctl/offline/scratch.h"
#include "daemon/ctl/terminal/json.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr int kExitNotAsked = 2;

bool is_directory_of_tables(const std::string& path) {
  std::error_code ignored;
  for (const char* table : kParquetTables) {
    if (!fs::is_regular_file(path + "/" + table + ".parquet", ignored)) return false;
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
  for (const char* table : kParquetTables) {
    sql += "CREATE VIEW " + std::string(table) + " AS SELECT * FROM read_parquet(" +
           quoted_sql(directory + "/" + table + ".parquet") + "); ";
  }
  return sql;
}

// Its standard streams are ours.
Result<int> run_engine(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, arguments[0], nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return errno_error(error, command[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return errno_error(errno, command[0]);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int query(const QueryOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{"query", false, out, err};
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
    auto made = make_scratch("query");
    if (!made.ok()) return answer.refuse_briefly(made.error(), kExitNotAsked);
    scratch = std::move(*made);
    tables = scratch.path() + "/tables";
    ConvertOptions conversion;
    conversion.inputs = options.inputs;
    conversion.to = Target::kParquet;
    conversion.output = tables;
    conversion.selection = options.selection;
    conversion.look_names_up = true;
    conversion.command = "query";
    conversion.progress = options.progress;
    std::ostringstream report;  // what was made is no answer to the question
    if (convert(conversion, report, err) == kExitNotAsked) return kExitNotAsked;
    if (!is_directory_of_tables(tables)) return 1;  // nothing matched, as was said
  }
  std::vector<std::string> command = {options.engine};
  if (options.format != "table") command.push_back("-" + options.format);
  command.emplace_back("-c");
  command.push_back(views_of(tables) + options.sql);
  const auto code = run_engine(command);
  if (!code.ok()) return answer.refuse_briefly(code.error(), kExitNotAsked);
  return *code;
}

}  // namespace collect::ctl
