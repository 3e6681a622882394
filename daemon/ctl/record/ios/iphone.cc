#include "daemon/ctl/record/ios/iphone.h"

#include <fmt/core.h>
#include <array>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/ctl/record/ios/lockdown_message.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

constexpr const char* kLockdownType = "com.apple.mobile.lockdown";

// One conversation: questions and answers in turn. Shared with the operations under way.
class Lockdown : public std::enable_shared_from_this<Lockdown> {
 public:
  using OnAnswer = std::function<void(Result<LockdownAnswer>)>;

  explicit Lockdown(attach::Socket socket) : socket_(std::move(socket)) {}

  void ask(std::string request, OnAnswer done) {
    request_ = std::move(request);
    done_ = std::move(done);
    asio::async_write(socket_, asio::buffer(request_),
                      [self = shared_from_this()](const std::error_code& error, size_t) {
                        if (error) {
                          self->finish(ended());
                        } else {
                          self->read_length();
                        }
                      });
  }
  void close() {
    std::error_code ignored;
    socket_.close(ignored);
  }

 private:
  static Error ended() { return {Code::kUnavailable, "lockdownd ended the connection"}; }

  void read_length() {
    asio::async_read(socket_, asio::buffer(length_),
                     [self = shared_from_this()](const std::error_code& error, size_t) {
                       if (error) {
                         self->finish(ended());
                         return;
                       }
                       const Result<uint32_t> length = decode_lockdown_length(self->length_);
                       if (length.ok()) {
                         self->read_body(*length);
                       } else {
                         self->finish(length.error());
                       }
                     });
  }
  void read_body(uint32_t length) {
    body_.resize(length);
    asio::async_read(socket_, asio::buffer(body_),
                     [self = shared_from_this()](const std::error_code& error, size_t) {
                       self->finish(error ? Result<LockdownAnswer>(ended())
                                          : decode_lockdown_answer(self->body_));
                     });
  }
  void finish(Result<LockdownAnswer> answer) {
    const OnAnswer done = std::exchange(done_, nullptr);
    if (done) done(std::move(answer));
  }

  attach::Socket socket_;
  std::string request_;
  OnAnswer done_;
  std::array<uint8_t, kLockdownLengthBytes> length_{};
  std::vector<uint8_t> body_;
};

class Questions {
 public:
  Questions(UsbmuxClient& client, std::string serial, attach::Socket socket)
      : client_(client),
        serial_(std::move(serial)),
        lockdown_(std::make_shared<Lockdown>(std::move(socket))) {}
  ~Questions() { lockdown_->close(); }

  Result<LockdownAnswer> ask(const std::string& request, const std::string& expected) {
    Result<LockdownAnswer> answer = client_.io().answer_of<LockdownAnswer>(
        [&](auto done) { lockdown_->ask(request, std::move(done)); }, kLockdownDeadline,
        "lockdownd of " + serial_);
    if (!answer.ok())
      return Error{answer.code(), fmt::format("{}: {}", serial_, answer.error().message)};
    if (answer->request == expected) return answer;
    return Error{Code::kDamaged, fmt::format("{}: lockdownd answered {} to {}", serial_,
                                             in_quotes(answer->request), expected)};
  }
  // Empty: it does not say. A value that needs a pairing is refused by an error of its own.
  Status value(const char* key, std::string& out) {
    const Result<LockdownAnswer> answer = ask(lockdown_get_value(key), "GetValue");
    if (!answer.ok()) return answer.error();
    out = answer->value;
    return {};
  }

 private:
  UsbmuxClient& client_;
  const std::string serial_;
  const std::shared_ptr<Lockdown> lockdown_;
};

}  // namespace

Result<IphoneFacts> look_at_iphone(UsbmuxClient& client, const std::string& serial) {
  Result<attach::Socket> socket = client.open(serial, kLockdownPort);
  if (!socket.ok()) {
    return Error{socket.code(),
                 fmt::format("{}: its lockdownd can't be reached: {}", serial,
                             socket.code() == Code::kNotFound
                                 ? fmt::format("no one listens on port {}", kLockdownPort)
                                 : socket.error().message)};
  }
  Questions questions(client, serial, std::move(*socket));
  const Result<LockdownAnswer> type = questions.ask(lockdown_query_type(), "QueryType");
  if (!type.ok()) return type.error();
  if (type->type != kLockdownType) {
    return Error{Code::kUnsupported,
                 fmt::format("{} does not run iOS now ({}): wait until it has started", serial,
                             printable(type->type))};
  }
  IphoneFacts facts;
  COLLECT_TRY(questions.value("DeviceName", facts.name));
  COLLECT_TRY(questions.value("ProductType", facts.model));
  COLLECT_TRY(questions.value("ProductVersion", facts.version));
  return facts;
}

Status check_ios(const std::string& serial, const IphoneFacts& facts) {
  unsigned major = 0;
  const std::string& version = facts.version;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major == 0 || major >= kLeastIos) return {};
  return Error{Code::kUnsupported,
               fmt::format("{} runs iOS {}; the agent needs iOS {}: take a newer phone", serial,
                           printable(version), kLeastIos)};
}

Result<attach::SourceDevice> choose_iphone(const UsbmuxClient& client, const std::string& wanted) {
  std::string list;
  for (const attach::SourceDevice& device : client.devices()) {
    if (!wanted.empty() && device.serial == wanted) return device;
    list += (list.empty() ? "" : ", ") + printable(device.serial);
  }
  if (list.empty()) {
    return Error{Code::kNotFound,
                 "usbmuxd knows no device: plug the iPhone in, unlock it, and trust this computer"};
  }
  if (!wanted.empty()) {
    return Error{Code::kNotFound,
                 fmt::format("there is no device {}; there is {}", printable(wanted), list)};
  }
  if (client.devices().size() == 1) return client.devices().front();
  return Error{Code::kInvalidArgument,
               fmt::format("several devices are there: {}; name one by --udid", list)};
}

std::string iphone_text(const std::string& serial, const IphoneFacts& facts) {
  std::string text;
  for (const std::string& part :
       {facts.name, facts.model, facts.version.empty() ? "" : "iOS " + facts.version}) {
    if (!part.empty()) text += (text.empty() ? " (" : ", ") + printable(part);
  }
  return printable(serial) + text + (text.empty() ? "" : ")");
}

}  // namespace collect::ctl
