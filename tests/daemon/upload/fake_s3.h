// The S3 server of fake_s3.py as a child of the test: it ends with this object, or with the test.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/s3_client.h"
#include "tests/daemon/upload/server_program.h"

namespace collect::upload::test {

inline constexpr char kBucket[] = "traces";

// A request that the server counted from 0.
struct LoggedRequest {
  std::string method;
  std::string key;
  std::string query;
  int status = 0;  // 0: it was not answered

  std::string words() const { return method + " " + key + "?" + query; }
};

class FakeS3 {
 public:
  // With a certificate and its key it speaks TLS.
  explicit FakeS3(const std::string& certificate = "", const std::string& key = "");

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }
  S3Settings settings() const;
  static Credentials credentials();

  // Those of fake_s3.py; the log begins again.
  void set(const nlohmann::json& settings) { control("POST", "set", settings.dump()); }
  void clear() { control("POST", "clear"); }
  void damage(const std::string& key, uint64_t offset);
  void put(const std::string& key, const std::string& body);
  std::vector<LoggedRequest> log();
  nlohmann::json objects() { return nlohmann::json::parse(control("GET", "objects")); }
  nlohmann::json uploads() { return nlohmann::json::parse(control("GET", "uploads")); }
  std::string body(const std::string& key);

 private:
  std::string control(const std::string& method, const std::string& what,
                      const std::string& body = "");

  ServerProgram program_;
  uint16_t port_ = 0;
};

}  // namespace collect::upload::test
