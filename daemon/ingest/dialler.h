// Connects to agents that listen: both channels, again and again until the place is detached. A
// plain `adb forward` or `iproxy` accepts here and ends when no app listens behind it: an end
// before the hello means "no agent there yet".
//
// Runs on one io thread. An address shows as an agent in state DIALING while no one answers; an
// endpoint on a device is shown with its device, by the caller that attached it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "daemon/ingest/handshake_reader.h"
#include "daemon/ingest/link/connector.h"

namespace collect::ingest {

struct DialReport {
  enum class State : uint8_t { kDialing, kUp, kStopped };
  State state = State::kDialing;
  std::string status;                                   // kDialing: what went wrong last
  wire::RefuseCode refused = wire::REFUSE_UNSPECIFIED;  // by either side
};
// At every change, on the io thread, not from inside attach(). The last word is kStopped.
using OnDial = std::function<void(const DialReport&)>;

class DialTarget : public std::enable_shared_from_this<DialTarget> {
 public:
  using OnHello =
      std::function<void(std::shared_ptr<Link>, const CheckedHello&, const std::string& dialled)>;

  DialTarget(IngestCore& core, asio::io_context& io, std::string name, Connector connector,
             OnDial on_dial, OnHello on_hello);

  void start();
  void stop();  // links that are up are not its business

 private:
  enum class Step : uint8_t { kPause, kControl, kData, kUp, kStopped };

  void dial();
  void on_connected(Result<ConnectedSocket> connected);
  void greet(std::shared_ptr<Link> link);
  void on_welcome(std::shared_ptr<Link> link, const CheckedHello& checked);
  void on_failure(const std::string& reason, wire::RefuseCode refused = wire::REFUSE_UNSPECIFIED);
  void on_lease_ended();
  void redial_later();
  void report(DialReport::State state, const std::string& status,
              wire::RefuseCode refused = wire::REFUSE_UNSPECIFIED);

  IngestCore& core_;
  asio::io_context& io_;
  const std::string name_;
  const Connector connector_;
  const OnDial on_dial_;
  const OnHello on_hello_;
  DialReport reported_;
  Step step_ = Step::kPause;
  uint32_t links_ = 0;  // handed on and still alive
  uint64_t attempt_ = 0;
  milliseconds pause_ = kFirstRedial;
  asio::steady_timer timer_;
};

class Dialler {
 public:
  Dialler(IngestCore& core, asio::io_context& io, DialTarget::OnHello on_hello)
      : core_(core), io_(io), on_hello_(std::move(on_hello)) {}

  // On the io thread. The entry as it is shown; an address that is attached already is taken so.
  Result<AgentSnapshot> attach(const std::string& address);
  // A place that only `connector` can reach; what comes of it is asked to `on_dial`.
  // kAlreadyExists, kLimit.
  Status attach(const std::string& name, Connector connector, OnDial on_dial);
  bool detach(const std::string& name);  // false: it is not attached
  void stop();

 private:
  IngestCore& core_;
  asio::io_context& io_;
  const DialTarget::OnHello on_hello_;
  std::map<std::string, std::shared_ptr<DialTarget>> targets_;
  std::map<std::string, std::shared_ptr<AgentSnapshot>> shown_;  // of addresses
};

}  // namespace collect::ingest
