// An S3 store in this process: one bucket in memory, served over loopback HTTP by a thread of its
// own. It knows what an uploader and a reader of parts need (objects of one PUT, lists,
// If-None-Match), checks Content-MD5 and refuses requests whose clock is off, and verifies no
// signature: tests/daemon/upload has a server for that. Time is the simulation's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/upload/s3/s3_client.h"

namespace collect::fleet {

class StoreServer {
 public:
  StoreServer();
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  upload::S3Settings settings() const;
  // No one listens any more, and connections break; or again, at the same port.
  void set_away(bool is_away);

  uint64_t requests() const;
  uint64_t skewed_requests() const;  // refused for their clock
  uint64_t bytes() const;            // of all objects
  // Each object whose key ends so.
  void for_each(
      std::string_view ending,
      const std::function<void(const std::string& key, const std::string& body)>& call) const;

 private:
  struct Connection {
    std::string in;
    std::string out;
  };
  struct Request {
    std::string method;
    std::string key;
    std::map<std::string, std::string> query;
    std::map<std::string, std::string> fields;  // lower case
    std::string_view body;
  };
  struct Answer {
    int status = 200;
    std::string body{};
    std::string fields{};  // whole lines
  };

  void listen();
  void serve();
  void obey();  // what set_away() wants
  bool read_from(int handle);
  bool write_to(int handle, Connection& connection);
  // True: a whole request was there, and is answered.
  bool answer_next(Connection& connection);
  Answer answer(const Request& request);
  Answer put(const Request& request);
  Answer get(const Request& request);
  Answer list(const Request& request);
  void close_all();

  uint16_t port_ = 0;
  int listening_ = -1;  // the server's thread
  int epoll_ = -1;
  int wake_ = -1;                          // an eventfd
  std::map<int, Connection> connections_;  // the server's thread
  mutable std::mutex mutex_;
  bool wants_away_ = false;                     // guarded by mutex_
  bool is_away_ = false;                        // guarded by mutex_
  bool stopping_ = false;                       // guarded by mutex_
  std::map<std::string, std::string> objects_;  // guarded by mutex_
  uint64_t bytes_ = 0;                          // guarded by mutex_
  uint64_t requests_ = 0;                       // guarded by mutex_
  uint64_t skewed_ = 0;                         // guarded by mutex_
  std::thread thread_;
};

}  // namespace collect::fleet
