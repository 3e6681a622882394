#include "daemon/ingest/dialler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

DialTarget::DialTarget(IngestCore& core, asio::io_context& io, std::string name,
                       Connector connector, OnDial on_dial, OnHello on_hello)
    : core_(core),
      io_(io),
      name_(std::move(name)),
      connector_(std::move(connector)),
      on_dial_(std::move(on_dial)),
      on_hello_(std::move(on_hello)),
      timer_(io) {}

void DialTarget::start() {
  spdlog::info("dialling {}", name_);
  dial();
}

void DialTarget::stop() {
  step_ = Step::kStopped;
  ++attempt_;
  timer_.cancel();
  report(DialReport::State::kStopped, "");
}

void DialTarget::report(DialReport::State state, const std::string& status,
                        wire::RefuseCode refused) {
  if (reported_.state == state && reported_.status == status && reported_.refused == refused) {
    return;
  }
  reported_ = {state, status, refused};
  on_dial_(reported_);
}

void DialTarget::dial() {
  step_ = links_ == 0 ? Step::kControl : Step::kData;
  const uint64_t attempt = ++attempt_;
  timer_.expires_after(kDialDeadline);
  // A timer that was cancelled is of an attempt that is over.
  timer_.async_wait([self = shared_from_this(), attempt](const std::error_code&) {
    if (attempt != self->attempt_) return;
    self->on_failure(fmt::format("no connection within {} s", kDialDeadline.count() / 1000));
  });
  // Weak, because a connector may be asked for the last time and never answer.
  connector_([weak = weak_from_this(), &io = io_, attempt](Result<ConnectedSocket> connected) {
    asio::post(io, [weak, attempt, connected = std::move(connected)]() mutable {
      const auto self = weak.lock();
      if (self && attempt == self->attempt_) self->on_connected(std::move(connected));
    });
  });
}

void DialTarget::on_connected(Result<ConnectedSocket> connected) {
  Result<Socket> socket =
      connected.ok() ? std::move(*connected).adopt(io_) : Result<Socket>(connected.error());
  if (!socket.ok()) {
    on_failure(socket.error().message);
    return;
  }
  std::error_code error;
  const Endpoint peer = socket->remote_endpoint(error);
  if (error) {
    on_failure(error.message());
    return;
  }
  if (!is_local(peer) && !core_.token().empty()) {
    on_failure(
        "not on this machine, and what is dialled is not encrypted: what a collector with a token "
        "records would be readable on the way; forward the port to 127.0.0.1, or let the agent "
        "connect with TLS");
    return;
  }
  ++attempt_;  // the hello has a deadline of its own
  timer_.cancel();
  prepare_socket(socket->native_handle());
  greet(std::make_shared<Link>(std::move(*socket), nullptr, name_));
}

void DialTarget::greet(std::shared_ptr<Link> link) {
  // Someone asked for this connection: it is charged, and not refused.
  using principal::Lease;
  if (std::string origin = origin_of(link->socket()); !origin.empty()) {
    link->set_principal({principal::Principal::Kind::kAddress, std::move(origin)});
  }
  const auto account = core_.budget.account(link->principal());
  for (const auto resource :
       {principal::Resource::kConnections, principal::Resource::kDescriptors}) {
    const auto lease = std::make_shared<Lease>(account, resource);
    lease->set(1);
    link->hold(lease);
  }
  wire::Dial dial;
  dial.set_channel(step_ == Step::kControl ? wire::CHANNEL_CONTROL : wire::CHANNEL_DATA);
  dial.set_min_version(wire::kProtocolVersion);
  dial.set_max_version(wire::kProtocolVersion);
  dial.set_collector(core_.options.version);
  link->send(wire::FrameType::kDial, dial);
  HandshakeReader::wait(
      core_, std::move(link),
      [self = shared_from_this(), attempt = attempt_](std::shared_ptr<Link> checked,
                                                      const CheckedHello& hello) {
        if (attempt == self->attempt_) self->on_welcome(std::move(checked), hello);
      },
      [self = shared_from_this(), attempt = attempt_](const std::string& reason,
                                                      wire::RefuseCode refused) {
        if (attempt == self->attempt_) self->on_failure(reason, refused);
      });
}

void DialTarget::on_welcome(std::shared_ptr<Link> link, const CheckedHello& checked) {
  const auto wanted = step_ == Step::kControl ? wire::CHANNEL_CONTROL : wire::CHANNEL_DATA;
  if (checked.hello.channel() != wanted) {
    link->refuse(wire::REFUSE_PROTOCOL, "the hello is for another channel than the dial", true);
    on_failure("the agent answered for another channel");
    return;
  }
  ++links_;
  // Weak, because at the very end a link may outlive the dialler and its io thread.
  link->hold(std::shared_ptr<void>(nullptr, [target = weak_from_this()](void*) {
    const auto self = target.lock();
    if (self) asio::post(self->io_, [self] { self->on_lease_ended(); });
  }));
  on_hello_(std::move(link), checked, name_);
  if (step_ == Step::kControl) {
    dial();
    return;
  }
  step_ = Step::kUp;
  ++attempt_;
  timer_.cancel();
  pause_ = kFirstRedial;
  report(DialReport::State::kUp, "");
}

// The pair lives and dies together: when both are gone, everything begins again.
void DialTarget::on_lease_ended() {
  --links_;
  if (step_ == Step::kStopped || links_ != 0) return;
  ++attempt_;  // the other one may be under way
  redial_later();
}

void DialTarget::on_failure(const std::string& reason, wire::RefuseCode refused) {
  ++attempt_;
  if (step_ == Step::kStopped) return;
  report(DialReport::State::kDialing, reason, refused);
  redial_later();
}

void DialTarget::redial_later() {
  step_ = Step::kPause;
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, kMaxRedial);
  timer_.async_wait([self = shared_from_this(), attempt = attempt_](const std::error_code&) {
    if (attempt != self->attempt_) return;
    if (self->reported_.state == DialReport::State::kUp) {
      self->report(DialReport::State::kDialing, "the link ended");
    }
    self->dial();
  });
}

Result<AgentSnapshot> Dialler::attach(const std::string& text) {
  const Result<Address> address = parse_address(text);
  if (!address.ok()) return address.error();
  if (address->kind == Address::Kind::kTcp && address->port == 0) {
    return Error{Code::kInvalidArgument,
                 fmt::format("address \"{}\": port 0 can't be dialled", text)};
  }
  const std::string name = to_string(*address);
  const auto known = shown_.find(name);
  if (known != shown_.end()) return *known->second;
  auto shown = std::make_shared<AgentSnapshot>();
  shown->id = core_.next_agent_id.fetch_add(1);
  shown->address = name;
  shown->dialled = true;
  shown->state = AgentState::kDialing;
  shown->status = "not tried yet";
  COLLECT_TRY(attach(name, connector_to(io_, *address), [this, shown](const DialReport& report) {
    shown->status = report.status;
    if (report.state == DialReport::State::kDialing) {
      core_.observer.agent_changed(*shown);
    } else {
      core_.observer.agent_removed(shown->id);  // an agent of its own now, or dialled no more
    }
  }));
  core_.observer.agent_changed(*shown);
  shown_[name] = shown;
  return *shown;
}

Status Dialler::attach(const std::string& name, Connector connector, OnDial on_dial) {
  if (targets_.contains(name)) return Error{Code::kAlreadyExists, name + " is attached already"};
  if (targets_.size() >= kMaxAttachedAddresses) {
    return Error{Code::kLimit, fmt::format("more than {} attached addresses: detach one first",
                                           kMaxAttachedAddresses)};
  }
  auto target = std::make_shared<DialTarget>(core_, io_, name, std::move(connector),
                                             std::move(on_dial), on_hello_);
  targets_[name] = target;
  target->start();
  return {};
}

bool Dialler::detach(const std::string& name) {
  const auto known = targets_.find(name);
  if (known == targets_.end()) return false;
  known->second->stop();
  targets_.erase(known);
  shown_.erase(name);
  return true;
}

void Dialler::stop() {
  for (auto& [name, target] : targets_) target->stop();
  targets_.clear();
  shown_.clear();
}

}  // namespace collect::ingest
