// A connection to PostgreSQL on which nothing waits without a bound. What goes into a statement
// goes as a parameter, never into its text.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fleet/libpq.h"
#include "formats/core/result.h"

namespace collect::fleet {

// Of a statement or an attempt to connect; the server ends a statement then too. The look-up of a
// host's name has the system's own bound.
inline constexpr std::chrono::seconds kDatabaseLimit{5};
// Of one answer; beyond them it is refused, and what still comes is dropped as it comes.
inline constexpr size_t kMaxRows = 10'000;
inline constexpr size_t kMaxRowBytes = 64u << 20;  // of all rows

using Cell = std::optional<std::string>;  // absent: NULL
using Row = std::vector<Cell>;

// Empty, or why `url` can't be used: no URL of PostgreSQL, or with a password in it, which
// --print-config and the list of processes would show.
std::string database_url_fault(std::string_view url);

class Database {
 public:
  // kUnavailable: it does not answer, or does not let us in. kUnsupported: there is no libpq.
  static Result<Database> connect(const std::string& url);
  ~Database();
  Database(Database&& other) noexcept;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database& operator=(Database&&) = delete;

  // Rows of `columns` cells each, whatever the server thinks an answer is. kUnavailable with the
  // server's words, or why the answer is none. After an error the connection is of no more use.
  Result<std::vector<Row>> run(const char* statement, const std::vector<std::string>& parameters,
                               size_t columns);

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Database(const Libpq& libpq, PGconn* connection) : libpq_(&libpq), connection_(connection) {}
  Status finish_connecting(Deadline deadline);
  Status wait(short events, Deadline deadline);
  Status flush(Deadline deadline);
  // Null: there are no more.
  Result<PGresult*> next_result(Deadline deadline);
  // The cells of a result's rows behind `rows`; what is wrong with them: they are not taken.
  std::optional<Error> take_rows(const PGresult* result, size_t columns, size_t& bytes,
                                 std::vector<Row>& rows) const;
  Error failure() const;

  const Libpq* libpq_;
  PGconn* connection_;  // null: moved away
};

}  // namespace collect::fleet
