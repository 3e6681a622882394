// Listens for agents and dial9 feeds that connect in. Runs on one io thread; every connection is
// handed to the owner of its process once its hello is known.
#pragma once

#include <asio/basic_socket_acceptor.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <string>

#include "daemon/ingest/handshake_reader.h"
#include "daemon/ingest/link/descriptors.h"
#include "daemon/ingest/pending_connections.h"
#include "daemon/principal/peer_user.h"

namespace collect::ingest {

class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  using OnHello = HandshakeReader::OnHello;
  using OnFeed = HandshakeReader::OnFeed;

  Acceptor(IngestCore& core, asio::io_context& io, OnHello on_hello, OnFeed on_feed);
  ~Acceptor();

  // kInvalidArgument: no such address, or one that others than this machine can reach without
  // showing who they are.
  // kAlreadyExists: a process listens there. Called before the io thread runs.
  Status open(const std::string& address);
  // open() with a socket that listens already: its address decides what it needs. Owns it.
  Status take_over(int listening);
  void start();
  void stop();                                             // on the io thread
  const std::string& address() const { return address_; }  // with the real port

 private:
  using Listener = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

  void accept_next();
  void on_accept_error(const std::error_code& error);
  void on_accepted(Socket socket);
  Status admit(Link& link);
  // Why the uid of its peer keeps the connection out; empty when it does not.
  std::string user_refusal(const principal::Peer& peer, const TlsContext* tls) const;
  void turn_away(Link& link, wire::RefuseCode code, const std::string& reason, bool retry);

  IngestCore& core_;
  asio::io_context& io_;
  const OnHello on_hello_;
  const OnFeed on_feed_;
  Listener listener_;
  asio::steady_timer pause_;
  SpareDescriptor spare_;
  principal::PeerLookup peers_;
  std::string address_;
  bool is_tcp_ = true;     // within TLS, where it is configured
  std::string unix_path_;  // to be removed at the end
  const std::shared_ptr<PendingConnections> pending_ = std::make_shared<PendingConnections>();
  const std::shared_ptr<OriginCounts> origins_ = std::make_shared<OriginCounts>();
  const std::shared_ptr<std::atomic<uint32_t>> lingering_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

}  // namespace collect::ingest
