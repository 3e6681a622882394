// Statements to a ClickHouse server over HTTP. What may pass (no connection, a busy server) is
// tried again; so a statement may be executed twice, and must give the same both times.
// WAREHOUSE.md "Server".
//
// Used on one thread, which waits for the server.
//
// Codes: kUnavailable: may pass, and did not in all attempts; kPermission: user, password or right;
// kNotFound: no such database or table; kInvalidArgument: the server does not take the statement;
// kCancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/upload/s3/http_connection.h"
#include "daemon/upload/s3/retry.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"

namespace collect::warehouse {

inline constexpr size_t kMaxServerErrorBytes = 64u << 10;
inline constexpr size_t kMaxShortAnswerBytes = 16u << 20;  // of ask()
inline constexpr size_t kMaxShownErrorBytes = 2000;

struct ClickHouseSettings {
  std::string url{};  // "http://host:8123"
  std::string database = "collect";
  std::string user{};  // empty: the server's default user
  std::string password{};
  // A question may be silent until it has its answer.
  upload::HttpSettings http{.stall_ms = 600'000};
  upload::RetrySettings retry{};
};

// kInvalidArgument: the URL. User and password come from CLICKHOUSE_USER and CLICKHOUSE_PASSWORD:
// where one is in the URL it is refused, because every user can see command lines.
Result<ClickHouseSettings> clickhouse_settings(std::string url, std::string database);

// An error as the server words it: "Code: 60. DB::Exception: …".
Error server_error(int http_status, std::string_view body);

// 'it''s': as a literal of SQL.
std::string sql_text(std::string_view text);

class ClickHouseClient {
 public:
  // `pauses` outlives it. `remark` is called for each failure after which it tries again.
  ClickHouseClient(ClickHouseSettings settings, upload::Pauses& pauses,
                   std::function<void(const Error&)> remark);

  // INSERT INTO `table` (`columns`), rows in RowBinary.
  Status insert(std::string_view table, std::string_view columns, Bytes rows);
  // INSERT INTO `table` (`columns`) SELECT `selection` FROM rows in RowBinary of `structure`, a
  // table named `sent`: what is the same in all rows travels once.
  Status insert_selected(std::string_view table, std::string_view columns,
                         std::string_view selection, std::string_view structure, Bytes rows);
  // A short answer, in TabSeparated: rows of fields, unescaped.
  Result<std::vector<std::vector<std::string>>> ask(std::string_view sql);
  // The answer as it comes, in `format` unless the statement has one; nothing comes of an answer
  // that fails half way. Not tried again.
  Status query(std::string_view sql, std::string_view format, ByteSink& out);

  // Whether the last statement failed: distinguishes errors of the server from those of files.
  bool last_failed() const { return retries_.last_failed(); }

 private:
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  Result<upload::HttpAnswer> post(const Parameters& parameters, Bytes body,
                                  const std::string& content_type, size_t most_answer_bytes,
                                  ByteSink* sink);
  Status send_rows(const Parameters& parameters, Bytes body, const std::string& content_type);

  const ClickHouseSettings settings_;
  const std::string boundary_;  // of a body with rows and what is around them
  upload::HttpConnection http_;
  upload::Retries retries_;
};

}  // namespace collect::warehouse
