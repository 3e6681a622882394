// What the fakes of adb do with blocking sockets. A failure is the end of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace collect::fakes {

bool read_exactly(int fd, char* out, size_t size);
bool send_all(int fd, const char* data, size_t size);
// -1: no one listens there, or the name is too long for a socket.
int connect_abstract(const std::string& name);
int connect_to_loopback(uint16_t port);  // -1: no one listens there
// Asks the adb server at `server` to connect to the device side at `device`, as if by cable: the
// entry comes, and goes with the connection. Its answer says only that it has tried.
void announce_device(uint16_t server, uint16_t device);

// A listener on loopback; `*port` 0 becomes the one it got. Ends the test program on failure.
int listen_on_loopback(uint16_t* port, int backlog);

}  // namespace collect::fakes
