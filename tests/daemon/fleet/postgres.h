// A real PostgreSQL server of this machine, for one test program (postgres_server.py).
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/daemon/upload/server_program.h"

namespace collect::fleet::test {

class Postgres {
 public:
  Postgres() : program_({POSTGRES_SERVER}) {
    std::istringstream line(program_.line());
    line >> port_ >> passfile_;
  }

  // Why there is none; empty: it runs.
  std::string missing() const {
    return program_.line().find("is not here") != std::string::npos ? program_.line() : "";
  }
  // Of a database with nothing in it.
  std::string url() const {
    return "postgresql://collect@127.0.0.1:" + port_ + "/fleet?passfile=" + passfile_;
  }
  std::string port() const { return port_; }
  // Each row on a line, its columns with | between them. `statement` is one line.
  std::vector<std::string> sql(const std::string& statement) {
    return nlohmann::json::parse(program_.ask("sql " + statement)).get<std::vector<std::string>>();
  }
  // One value.
  std::string value(const std::string& statement) {
    const auto lines = sql(statement);
    return lines.empty() ? "" : lines[0];
  }
  void crash() { program_.ask("crash"); }    // every connection is cut
  void start() { program_.ask("start"); }    // after a crash
  void freeze() { program_.ask("freeze"); }  // it does not answer, and no connection is cut
  void thaw() { program_.ask("thaw"); }

  void drop_tables() { sql("DROP TABLE IF EXISTS collect_leases, collect_collectors"); }

 private:
  upload::test::ServerProgram program_;
  std::string port_;
  std::string passfile_;
};

// One for all tests of a program; each begins without tables.
inline Postgres& postgres() {
  static Postgres server;
  return server;
}

}  // namespace collect::fleet::test
