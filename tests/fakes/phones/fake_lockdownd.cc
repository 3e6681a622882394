#include "tests/fakes/phones/fake_lockdownd.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fakes/phones/plain_socket.h"

namespace collect::fakes {
namespace {

constexpr int kLookMs = 10;
constexpr int kBacklog = 16;

std::string text_of(const std::string& list, const std::string& key) {
  const std::string before = "<key>" + key + "</key>";
  size_t at = list.find(before);
  if (at == std::string::npos) return "";
  at = list.find("<string>", at);
  if (at == std::string::npos) return "";
  at += 8;
  return list.substr(at, list.find("</string>", at) - at);
}

std::string entry(const std::string& key, const std::string& value) {
  return "<key>" + key + "</key><string>" + value + "</string>";
}

}  // namespace

FakeLockdownd::FakeLockdownd() : listener_(listen_on_loopback(&port_, kBacklog)) {
  thread_ = std::thread([this] { run(); });
}

FakeLockdownd::~FakeLockdownd() {
  over_ = true;
  thread_.join();
  close(listener_);
}

void FakeLockdownd::set_value(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
}

void FakeLockdownd::set_type(const std::string& type) {
  const std::lock_guard lock(mutex_);
  type_ = type;
}

void FakeLockdownd::answer_with(const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  instead_ = bytes;
}

void FakeLockdownd::on_question(std::function<void()> happens) {
  const std::lock_guard lock(mutex_);
  happens_ = std::move(happens);
}

std::vector<std::string> FakeLockdownd::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::string FakeLockdownd::answer(const std::string& request) {
  const std::string what = text_of(request, "Request");
  const std::string key = text_of(request, "Key");
  const std::lock_guard lock(mutex_);
  asked_.push_back(key.empty() ? what : what + " " + key);
  if (happens_) happens_();
  if (!instead_.empty()) return instead_;
  std::string inside = entry("Request", what);
  if (what == "QueryType") {
    inside += entry("Type", type_);
  } else if (what == "GetValue" && values_.contains(key)) {
    inside += entry("Key", key) + entry("Value", values_.at(key));
  } else {
    inside += entry("Key", key) + entry("Error", "MissingValue");
  }
  const std::string list =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST "
      "1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">"
      "<dict>" +
      inside + "</dict></plist>\n";
  const uint32_t length = htonl(static_cast<uint32_t>(list.size()));
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + list;
}

void FakeLockdownd::serve(int client) {
  pollfd wait{client, POLLIN, 0};
  while (!over_) {
    if (poll(&wait, 1, kLookMs) == 0) continue;
    uint32_t length = 0;
    if (!read_exactly(client, reinterpret_cast<char*>(&length), sizeof length)) return;
    std::string request(ntohl(length), '\0');
    if (!read_exactly(client, request.data(), request.size())) return;
    const std::string said = answer(request);
    if (!send_all(client, said.data(), said.size())) return;
  }
}

void FakeLockdownd::run() {
  pollfd wait{listener_, POLLIN, 0};
  while (!over_) {
    if (poll(&wait, 1, kLookMs) == 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    serve(client);
    close(client);
  }
}

}  // namespace collect::fakes
