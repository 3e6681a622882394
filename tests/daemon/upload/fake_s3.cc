#include "tests/daemon/upload/fake_s3.h"

#include <cstdlib>

#include "daemon/upload/s3/uri.h"
#include "tests/daemon/web/http_client.h"

namespace collect::upload::test {

namespace {

std::vector<std::string> arguments_of(const std::string& certificate, const std::string& key) {
  std::vector<std::string> words = {FAKE_S3, kBucket};
  if (!certificate.empty()) {
    words.insert(words.end(), {"--certificate", certificate, "--key", key});
  }
  return words;
}

}  // namespace

FakeS3::FakeS3(const std::string& certificate, const std::string& key)
    : program_(arguments_of(certificate, key)),
      port_(static_cast<uint16_t>(std::atoi(program_.line().c_str()))) {
  if (port_ == 0) std::abort();
}

S3Settings FakeS3::settings() const {
  S3Settings settings;
  settings.endpoint = endpoint();
  settings.bucket = kBucket;
  settings.region = "eu-test-1";
  return settings;
}

Credentials FakeS3::credentials() {
  return {"FAKEACCESSKEY", "fake/secret+key"};
}

std::string FakeS3::control(const std::string& method, const std::string& what,
                            const std::string& body) {
  web::HttpClient client(port_);
  client.send(method + " /-/" + what + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const web::ReceivedAnswer answer = client.read_answer();
  if (answer.status != 200) std::abort();
  return answer.body;
}

void FakeS3::damage(const std::string& key, uint64_t offset) {
  control("POST", "damage", nlohmann::json{{"key", key}, {"offset", offset}}.dump());
}

void FakeS3::put(const std::string& key, const std::string& body) {
  control("POST", "put", nlohmann::json{{"key", key}, {"body", body}}.dump());
}

std::string FakeS3::body(const std::string& key) {
  return control("GET", "body/" + encode_path(key));
}

std::vector<LoggedRequest> FakeS3::log() {
  std::vector<LoggedRequest> requests;
  for (const auto& entry : nlohmann::json::parse(control("GET", "log"))) {
    requests.push_back({entry[0], entry[1], entry[2], entry[3]});
  }
  return requests;
}

}  // namespace collect::upload::test
