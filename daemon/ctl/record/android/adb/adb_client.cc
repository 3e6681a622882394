#include "daemon/ctl/record/android/adb/adb_client.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

namespace collect::ctl {

using attach::AdbConnection;

namespace {

// The connection keeps deadlines of its own: this one only ends a wait that would never end.
constexpr std::chrono::milliseconds kAdbAnswerBound = 3 * attach::kAdbAnswerDeadline;

}  // namespace

template <class T>
Result<T> AdbClient::answer_of(const ConnectionRef& connection,
                               const std::function<void(std::function<void(Result<T>)>)>& ask) {
  Result<T> answer = io_.answer_of<T>(ask, kAdbAnswerBound, "adb server at " + address());
  if (!answer.ok()) connection->close();
  return answer;
}

Result<AdbClient::ConnectionRef> AdbClient::connect() {
  auto connection = std::make_shared<AdbConnection>(io_.io(), address_);
  const Status connected =
      answer_of<void>(connection, [&](auto done) { connection->connect(std::move(done)); });
  if (connected.ok()) return connection;
  if (connected.code() == Code::kCancelled) return connected.error();
  return Error{Code::kUnavailable,
               fmt::format("no adb server at {}: start it with `adb start-server`", address())};
}

Result<std::string> AdbClient::ask_host(const std::string& request) {
  const Result<ConnectionRef> connection = connect();
  if (!connection.ok()) return connection.error();
  return answer_of<std::string>(
      *connection, [&](auto done) { (*connection)->ask_text(request, std::move(done)); });
}

Result<uint32_t> AdbClient::version() {
  const Result<std::string> text = ask_host("host:version");
  if (!text.ok()) return text.error();
  uint32_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, fault] = std::from_chars(text->data(), end, number, 16);
  if (fault == std::errc() && stop == end) return number;
  return Error{Code::kDamaged,
               fmt::format("adb server at {}: \"{}\" is no version", address(), *text)};
}

Result<std::vector<attach::SourceDevice>> AdbClient::devices() {
  const Result<std::string> text = ask_host("host:devices-l");
  if (!text.ok()) return text.error();
  return attach::parse_adb_devices(*text).devices;
}

Result<std::string> AdbClient::features(const std::string& serial) {
  return ask_host(fmt::format("host-serial:{}:features", serial));
}

Result<attach::Socket> AdbClient::open(const std::string& serial, const std::string& service) {
  const Result<ConnectionRef> connection = connect();
  if (!connection.ok()) return connection.error();
  const auto ask = [&](const std::string& request) {
    return answer_of<void>(*connection,
                           [&](auto done) { (*connection)->ask(request, std::move(done)); });
  };
  Status answered = ask("host:transport:" + serial);
  if (!answered.ok()) {
    const Code code = answered.code() == Code::kNotFound ? Code::kUnavailable : answered.code();
    return Error{code, fmt::format("{}: {}", serial, answered.error().message)};
  }
  answered = ask(service);
  if (!answered.ok())
    return Error{answered.code(), fmt::format("{}: {}", serial, answered.error().message)};
  return (*connection)->take_socket();
}

}  // namespace collect::ctl
