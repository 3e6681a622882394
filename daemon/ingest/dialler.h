// Connects to agents that listen: both channels, again and again until the address is detached. A
// plain `adb forward` or `iproxy` accepts here and ends when no app listens behind it: an end
// before the hello means "no agent there yet".
//
// Runs on one io thread. Each address shows as an agent in state DIALING while nobody answers.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "daemon/ingest/hello_waiter.h"

namespace collect::ingest {

class DialTarget : public std::enable_shared_from_this<DialTarget> {
 public:
  using OnHello =
      std::function<void(std::shared_ptr<Link>, const wire::Hello&, const std::string& dialled)>;

  DialTarget(IngestCore& core, asio::io_context& io, Address address, OnHello on_hello);

  void start();
  void stop();  // shows the address as gone; links that are up are not its business
  const AgentSnapshot& shown() const { return shown_; }

 private:
  enum class Step : uint8_t { kPause, kControl, kData, kUp, kStopped };

  void dial();
  void connect(const Endpoint& endpoint);
  void on_connected(std::shared_ptr<Socket> socket);
  void on_welcome(std::shared_ptr<Link> link, const wire::Hello& hello);
  void on_failure(const std::string& reason);
  void on_lease_ended();
  void redial_later();
  void show(AgentState state, const std::string& status);

  IngestCore& core_;
  asio::io_context& io_;
  const Address address_;
  const std::string text_;
  const OnHello on_hello_;
  AgentSnapshot shown_;
  bool visible_ = false;
  Step step_ = Step::kPause;
  uint32_t links_ = 0;  // handed on and still alive
  uint64_t attempt_ = 0;
  milliseconds pause_ = kFirstRedial;
  asio::steady_timer timer_;
  asio::ip::tcp::resolver resolver_;
};

class Dialler {
 public:
  Dialler(IngestCore& core, asio::io_context& io, DialTarget::OnHello on_hello)
      : core_(core), io_(io), on_hello_(std::move(on_hello)) {}

  // On the io thread. The entry as it is shown; an address that is attached already is taken so.
  Result<AgentSnapshot> attach(const std::string& address);
  bool detach(const std::string& address);  // false: it is not attached
  void stop();

 private:
  IngestCore& core_;
  asio::io_context& io_;
  const DialTarget::OnHello on_hello_;
  std::map<std::string, std::shared_ptr<DialTarget>> targets_;
};

}  // namespace collect::ingest
