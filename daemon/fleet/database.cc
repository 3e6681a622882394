#include "daemon/fleet/database.h"

#include <poll.h>

#include <cerrno>
#include <utility>

namespace collect::fleet {
namespace {

using Clock = std::chrono::steady_clock;

// Several lines, of which the first one says what is wrong.
std::string first_line(const char* text) {
  const std::string_view all = text;
  return std::string(all.substr(0, all.find('\n')));
}

Error no_answer() {
  return {Code::kUnavailable,
          "the database did not answer within " + std::to_string(kDatabaseLimit.count()) + " s"};
}

}  // namespace

std::string database_url_fault(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == url.npos ||
      (url.substr(0, scheme) != "postgresql" && url.substr(0, scheme) != "postgres")) {
    return "write postgresql://USER@HOST/DATABASE";
  }
  const std::string_view rest = url.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const size_t user_end = authority.rfind('@');
  const bool has_password =
      (user_end != authority.npos && authority.substr(0, user_end).find(':') != authority.npos) ||
      rest.find("password=") != rest.npos;
  if (!has_password) return {};
  return "a password does not belong here, where others can read it; write ?passfile=FILE, or set "
         "PGPASSFILE or PGPASSWORD";
}

Result<Database> Database::connect(const std::string& url) {
  const auto libpq = load_libpq();
  if (!libpq.ok()) return libpq.error();
  const std::string limit = "-c statement_timeout=" + std::to_string(kDatabaseLimit.count()) + "s";
  // A later one wins: what stands in the URL, over our options and names; our encoding, over that.
  const char* const names[] = {"fallback_application_name", "options", "dbname", "client_encoding",
                               nullptr};
  const char* const values[] = {"collectord", limit.c_str(), url.c_str(), "UTF8", nullptr};
  Database database(**libpq, (*libpq)->PQconnectStartParams(names, values, 1));
  if (database.connection_ == nullptr) return Error{Code::kExhausted, "no memory for a connection"};
  // Otherwise the server's notices go to standard error, between the lines of the log.
  (*libpq)->PQsetNoticeProcessor(database.connection_, [](void*, const char*) {}, nullptr);
  COLLECT_TRY(database.finish_connecting(Clock::now() + kDatabaseLimit));
  return database;
}

Database::~Database() {
  if (connection_ != nullptr) libpq_->PQfinish(connection_);
}

Database::Database(Database&& other) noexcept
    : libpq_(other.libpq_), connection_(std::exchange(other.connection_, nullptr)) {}

Status Database::finish_connecting(Deadline deadline) {
  auto wanted = PGRES_POLLING_WRITING;  // as if PQconnectPoll had said so, says its manual
  while (libpq_->PQstatus(connection_) != CONNECTION_BAD) {
    COLLECT_TRY(wait(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline));
    wanted = libpq_->PQconnectPoll(connection_);
    if (wanted == PGRES_POLLING_FAILED) break;
    if (wanted != PGRES_POLLING_OK) continue;
    libpq_->PQsetnonblocking(connection_, 1);
    return {};
  }
  return failure();
}

Status Database::wait(short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return no_answer();
    pollfd socket{libpq_->PQsocket(connection_), events, 0};
    const int ready = ::poll(&socket, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return errno_error(errno, "the database's connection");
  }
}

Status Database::flush(Deadline deadline) {
  while (true) {
    const int left = libpq_->PQflush(connection_);
    if (left == 0) return {};
    if (left < 0) return failure();
    COLLECT_TRY(wait(POLLIN | POLLOUT, deadline));
    if (libpq_->PQconsumeInput(connection_) == 0) return failure();
  }
}

Result<PGresult*> Database::next_result(Deadline deadline) {
  while (libpq_->PQisBusy(connection_) != 0) {
    COLLECT_TRY(wait(POLLIN, deadline));
    if (libpq_->PQconsumeInput(connection_) == 0) return failure();
  }
  return libpq_->PQgetResult(connection_);
}

Error Database::failure() const {
  return {Code::kUnavailable, first_line(libpq_->PQerrorMessage(connection_))};
}

std::optional<Error> Database::take_rows(const PGresult* result, size_t columns, size_t& bytes,
                                         std::vector<Row>& rows) const {
  const int count = libpq_->PQntuples(result);
  if (count == 0) return std::nullopt;
  const int fields = libpq_->PQnfields(result);
  if (static_cast<size_t>(fields) != columns) {
    return Error{Code::kUnavailable, "the database answers with " + std::to_string(fields) +
                                         " columns and not with " + std::to_string(columns)};
  }
  for (int row = 0; row < count; ++row) {
    if (rows.size() == kMaxRows) {
      return Error{Code::kUnavailable, "more rows than " + std::to_string(kMaxRows)};
    }
    Row& cells = rows.emplace_back(columns);
    for (int column = 0; column < fields; ++column) {
      if (libpq_->PQgetisnull(result, row, column) != 0) continue;
      const auto length = static_cast<size_t>(libpq_->PQgetlength(result, row, column));
      bytes += length;
      if (bytes > kMaxRowBytes) {
        return Error{Code::kUnavailable,
                     "rows of more than " + std::to_string(kMaxRowBytes) + " bytes"};
      }
      cells[static_cast<size_t>(column)].emplace(libpq_->PQgetvalue(result, row, column), length);
    }
  }
  return std::nullopt;
}

Result<std::vector<Row>> Database::run(const char* statement,
                                       const std::vector<std::string>& parameters, size_t columns) {
  const auto deadline = Clock::now() + kDatabaseLimit;
  std::vector<const char*> values;
  for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
  if (libpq_->PQsendQueryParams(connection_, statement, static_cast<int>(values.size()), nullptr,
                                values.data(), nullptr, nullptr, 0) == 0) {
    return failure();
  }
  // Else libpq keeps the whole answer before we see the first row.
  (void)libpq_->PQsetSingleRowMode(connection_);
  COLLECT_TRY(flush(deadline));
  std::vector<Row> rows;
  size_t bytes = 0;
  std::optional<Error> refused;
  while (true) {
    const auto next = next_result(deadline);
    if (!next.ok()) return next.error();
    const std::unique_ptr<PGresult, decltype(libpq_->PQclear)> result(*next, libpq_->PQclear);
    if (result == nullptr) break;
    const ExecStatusType status = libpq_->PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK) continue;
    if (status != PGRES_TUPLES_OK && status != PGRES_SINGLE_TUPLE) {
      refused = Error{Code::kUnavailable, first_line(libpq_->PQresultErrorMessage(result.get()))};
    } else if (!refused) {
      refused = take_rows(result.get(), columns, bytes, rows);
    }
    if (refused) rows = {};
  }
  if (refused) return *refused;
  return rows;
}

}  // namespace collect::fleet
