// A usbmux source on the test's own thread, and what it said.
#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/attach/usbmux/usbmux_limits.h"
#include "daemon/attach/usbmux/usbmux_source.h"
#include "tests/fakes/phones/fake_usbmuxd.h"

namespace collect::attach {

inline constexpr std::chrono::seconds kPatience{20};

// An app on a device: something on loopback that accepts.
class App {
 public:
  explicit App(asio::io_context& io)
      : acceptor_(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}
  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  asio::ip::tcp::socket accept() { return acceptor_.accept(); }

 private:
  asio::ip::tcp::acceptor acceptor_;
};

class UsbmuxSourceTest : public testing::Test {
 protected:
  using Agents = Result<std::vector<std::string>>;
  using Devices = std::vector<SourceDevice>;

  static std::string socket_path() {
    static int count = 0;
    return testing::TempDir() + "usbmux_" + std::to_string(getpid()) + "_" +
           std::to_string(++count);
  }

  void start(const std::string& address) {
    const auto parsed = parse_usbmux_address(address);
    ASSERT_TRUE(parsed.ok());
    source_ = std::make_unique<UsbmuxSource>(io_, *parsed);
    source_->start([this](const ServerState& state) { servers_.push_back(state); },
                   [this](const Devices& devices) { lists_.push_back(devices); });
    EXPECT_TRUE(servers_.empty() && lists_.empty()) << "answered within the call";
  }
  void TearDown() override {
    if (source_) source_->stop();
    source_.reset();
    while (io_.poll() != 0) {
    }
  }

  bool eventually(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  // The list that was reported last.
  Devices devices() const { return lists_.empty() ? Devices{} : lists_.back(); }
  bool wait_devices(size_t count) {
    return eventually([&] { return devices().size() == count; });
  }
  bool connected() const { return !servers_.empty() && servers_.back().connected; }

  Agents find(const std::string& serial) {
    std::optional<Agents> found;
    source_->find_agents(serial, [&](Agents agents) { found = std::move(agents); });
    EXPECT_FALSE(found.has_value()) << "answered within the call";
    eventually([&] { return found.has_value(); });
    return found ? *found : Agents(Error{Code::kCancelled, "no answer came"});
  }
  Result<Socket> open(const std::string& serial, const std::string& endpoint) {
    std::optional<Result<Socket>> opened;
    source_->open(serial, endpoint, [&](Result<Socket> socket) { opened = std::move(socket); });
    EXPECT_FALSE(opened.has_value()) << "answered within the call";
    eventually([&] { return opened.has_value(); });
    return opened ? std::move(*opened) : Result<Socket>(Error{Code::kCancelled, "no answer came"});
  }

  asio::io_context io_;
  std::unique_ptr<UsbmuxSource> source_;
  std::vector<ServerState> servers_;
  std::vector<Devices> lists_;
};

}  // namespace collect::attach
