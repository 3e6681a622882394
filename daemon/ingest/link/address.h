// Endpoints of addresses (formats/core/address.h), and who is at the other end of a connection.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/address.h"
#include "formats/core/result.h"

namespace collect::ingest {

using Socket = asio::generic::stream_protocol::socket;
using Endpoint = asio::generic::stream_protocol::endpoint;

// The endpoint of a Unix address, or of a TCP address whose host is a number or "localhost".
// kUnsupported: the host has to be looked up.
Result<Endpoint> numeric_endpoint(const Address& address);
// numeric_endpoint(), and looks names up; may block for as long as the resolver likes.
Result<Endpoint> resolve_endpoint(const Address& address);

// The host to which a connection from there is charged: of IPv6 the first 64 bits, since the owner
// of one such address has all of them. Empty for Unix sockets and loopback.
std::string origin_of(const Endpoint& endpoint);
std::string origin_of(const Socket& socket);  // of its peer
// Whether only this machine can reach it.
bool is_local(const Endpoint& endpoint);
std::string endpoint_text(const Endpoint& endpoint);
// The peer of a connected socket, for the log: "127.0.0.1:40312" or "unix".
std::string peer_text(const Socket& socket);
// Close-on-exec (Asio does not set it) and, with TCP, no delay.
void prepare_socket(int native_handle);

}  // namespace collect::ingest
