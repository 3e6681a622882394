#include "daemon/ingest/dialler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/ingest/limits.h"

namespace collect::ingest {

DialTarget::DialTarget(IngestCore& core, asio::io_context& io, Address address, OnHello on_hello)
    : core_(core),
      io_(io),
      address_(std::move(address)),
      text_(to_string(address_)),
      on_hello_(std::move(on_hello)),
      timer_(io),
      resolver_(io) {
  shown_.id = core.next_agent_id.fetch_add(1);
  shown_.address = text_;
  shown_.dialled = true;
}

void DialTarget::start() {
  spdlog::info("dialling {}", text_);
  show(AgentState::kDialing, "not tried yet");
  dial();
}

void DialTarget::stop() {
  step_ = Step::kStopped;
  ++attempt_;
  timer_.cancel();
  resolver_.cancel();
  if (visible_) core_.observer.agent_removed(shown_.id);
  visible_ = false;
}

void DialTarget::show(AgentState state, const std::string& status) {
  if (visible_ && shown_.state == state && shown_.status == status) return;
  visible_ = true;
  shown_.state = state;
  shown_.status = status;
  core_.observer.agent_changed(shown_);
}

void DialTarget::dial() {
  step_ = links_ == 0 ? Step::kControl : Step::kData;
  const uint64_t attempt = ++attempt_;
  timer_.expires_after(kDialDeadline);
  timer_.async_wait([self = shared_from_this(), attempt](const std::error_code& error) {
    if (error || attempt != self->attempt_) return;
    self->resolver_.cancel();
    self->on_failure("no connection within " + std::to_string(kDialDeadline.count() / 1000) + " s");
  });
  const Result<Endpoint> endpoint = numeric_endpoint(address_);
  if (endpoint.ok()) {
    connect(*endpoint);
    return;
  }
  resolver_.async_resolve(
      address_.host, std::to_string(address_.port),
      [self = shared_from_this(), attempt](const std::error_code& error,
                                           const asio::ip::tcp::resolver::results_type& found) {
        if (attempt != self->attempt_) return;
        if (error || found.empty()) {
          self->on_failure(error.message());
        } else {
          self->connect(Endpoint(found.begin()->endpoint()));
        }
      });
}

void DialTarget::connect(const Endpoint& endpoint) {
  if (!is_local(endpoint) && !core_.token().empty()) {
    on_failure(
        "not on this machine, and what is dialled is not encrypted: the token would be readable on "
        "the way; forward the port to 127.0.0.1, or let the agent connect with TLS");
    return;
  }
  auto socket = std::make_shared<Socket>(io_);
  const uint64_t attempt = attempt_;
  socket->async_connect(endpoint,
                        [self = shared_from_this(), socket, attempt](const std::error_code& error) {
                          if (attempt != self->attempt_) return;
                          if (error) {
                            self->on_failure(error.message());
                          } else {
                            self->on_connected(socket);
                          }
                        });
}

void DialTarget::on_connected(std::shared_ptr<Socket> socket) {
  const uint64_t attempt = ++attempt_;  // the hello has a deadline of its own
  timer_.cancel();
  prepare_socket(socket->native_handle());
  auto link = std::make_shared<Link>(std::move(*socket), nullptr, text_);
  wire::Dial dial;
  dial.set_channel(step_ == Step::kControl ? wire::CHANNEL_CONTROL : wire::CHANNEL_DATA);
  dial.set_min_version(wire::kProtocolVersion);
  dial.set_max_version(wire::kProtocolVersion);
  dial.set_collector(core_.options.version);
  dial.set_token(core_.token());
  link->send(wire::FrameType::kDial, dial);
  const auto self = shared_from_this();
  HelloWaiter::wait(
      core_, link,
      [self, attempt](std::shared_ptr<Link> checked, const wire::Hello& hello) {
        if (attempt != self->attempt_) return;
        self->on_welcome(std::move(checked), hello);
      },
      [self, attempt](const std::string& reason) {
        if (attempt == self->attempt_) self->on_failure(reason);
      });
}

void DialTarget::on_welcome(std::shared_ptr<Link> link, const wire::Hello& hello) {
  const auto wanted = step_ == Step::kControl ? wire::CHANNEL_CONTROL : wire::CHANNEL_DATA;
  if (hello.channel() != wanted) {
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
  on_hello_(std::move(link), hello, text_);
  if (step_ == Step::kControl) {
    dial();
    return;
  }
  step_ = Step::kUp;
  ++attempt_;
  timer_.cancel();
  pause_ = kFirstRedial;
  if (visible_) core_.observer.agent_removed(shown_.id);  // it is an agent of its own now
  visible_ = false;
}

// The pair lives and dies together: when both are gone, everything begins anew.
void DialTarget::on_lease_ended() {
  --links_;
  if (step_ == Step::kStopped) return;
  if (step_ == Step::kUp || links_ == 0) {
    step_ = Step::kPause;
    ++attempt_;
  }
  if (links_ == 0) redial_later();
}

void DialTarget::on_failure(const std::string& reason) {
  ++attempt_;
  if (step_ == Step::kStopped) return;
  show(AgentState::kDialing, reason);
  redial_later();
}

void DialTarget::redial_later() {
  step_ = Step::kPause;
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, kMaxRedial);
  timer_.async_wait([self = shared_from_this(), attempt = attempt_](const std::error_code& error) {
    if (error || attempt != self->attempt_ || self->step_ != Step::kPause) return;
    self->show(AgentState::kDialing, self->visible_ ? self->shown_.status : "the link ended");
    self->dial();
  });
}

Result<AgentSnapshot> Dialler::attach(const std::string& text) {
  const Result<Address> address = parse_address(text);
  if (!address.ok()) return address.error();
  if (address->kind == Address::Kind::kTcp && address->port == 0) {
    return Error{Code::kInvalidArgument, "address \"" + text + "\": port 0 can't be dialled"};
  }
  const std::string name = to_string(*address);
  const auto known = targets_.find(name);
  if (known != targets_.end()) return known->second->shown();
  if (targets_.size() >= kMaxAttachedAddresses) {
    return Error{Code::kLimit, "more than " + std::to_string(kMaxAttachedAddresses) +
                                   " attached addresses: detach one first"};
  }
  auto target = std::make_shared<DialTarget>(core_, io_, *address, on_hello_);
  targets_[name] = target;
  target->start();
  return target->shown();
}

bool Dialler::detach(const std::string& address) {
  const auto known = targets_.find(address);
  if (known == targets_.end()) return false;
  known->second->stop();
  targets_.erase(known);
  return true;
}

void Dialler::stop() {
  for (auto& [address, target] : targets_) target->stop();
  targets_.clear();
}

}  // namespace collect::ingest
