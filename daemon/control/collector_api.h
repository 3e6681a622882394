// What the control service asks of the collector, and nothing more: collector.h implements it, the
// gRPC service calls it, and neither knows the other's types beyond proto/control.
//
// Thread rules: every function may be called from any thread. None blocks on the network or a disk:
// what takes time answers through its callback, exactly once, on a thread of the collector's. Watch
// callbacks come one at a time for each watch, and none comes after `unwatch` returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/control/methods.h"
#include "daemon/principal/principal.h"
#include "formats/core/result.h"

namespace collect::control {

namespace api = ::collect::control::v1;

using WatchId = uint64_t;

// One file of a session, open for reading.
class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual uint64_t size() const = 0;  // when it was opened
  // At most `bytes` from `offset`; fewer only at the file's end. One at a time.
  virtual void read(uint64_t offset, size_t bytes,
                    std::function<void(Result<std::string>)> done) = 0;
};

// On the thread that converts. False: no one wants it any more; then it is over, kCancelled.
using ConversionProgress = std::function<bool(uint64_t done_bytes, uint64_t bytes)>;

// Callbacks of a watch of calls: messages one at a time, then its end; both on a thread of its own.
struct CallWatcher {
  std::function<void(api::CallBatch)> on_batch;
  std::function<void(const Status&)> on_end;  // ok: the session is sealed, or the time is over
};

// ArmDetail, StartDetail and StopDetail.
struct DetailCommand {
  api::DetailMode mode = api::DETAIL_MODE_OFF;
  api::Selector target;
  std::vector<std::string> functions = {};
  std::vector<std::string> threads = {};
  uint64_t duration_ns = 0;  // 0: for good
  uint64_t pre_roll_ns = 0;
};

// A request, and whose call it is: for methods that not every client may call.
template <class Request>
struct CallOf {
  Request request;
  principal::Principal caller;
};

class CollectorApi {
 public:
  virtual ~CollectorApi() = default;

  // What takes one request and answers once, by its request: AttachAgentRequest, … SetRulesRequest,
  // DetailCommand, which is answered with a std::vector<api::DetailOutcome>, and
  // CallOf<AttachProcessRequest>, CallOf<DetachProcessRequest>.
  virtual const Methods& methods() const = 0;

  // Snapshots: copied under a short lock.
  virtual std::vector<api::Agent> agents(const api::Selector& target) = 0;
  virtual std::vector<api::Session> sessions(const api::Selector& target) = 0;  // newest first
  virtual std::vector<api::Device> devices(const std::string& match) = 0;
  virtual std::vector<api::DeviceServer> device_servers() = 0;
  virtual Result<api::Session> session(const std::string& name) = 0;  // empty: the newest
  virtual Result<api::Agent> agent(const std::string& name) = 0;      // empty: the only one
  virtual Result<api::Device> device(const std::string& name) = 0;    // empty: the only one
  virtual api::Stats stats() = 0;

  // Every change from now on. The service looks up the present agents itself, after this returned:
  // PRESENT events from here are allowed and not needed.
  virtual WatchId watch_agents(std::function<void(const api::AgentEvent&)> on_event) = 0;
  virtual WatchId watch_devices(std::function<void(const api::DeviceEvent&)> on_event) = 0;
  // Ends with the sealed session, or with an error when it is deleted. At most one call per
  // `interval_ms` but for changes of state, which are reported at once. The service shows the
  // present state itself and does not ask for sessions that are sealed.
  virtual Result<WatchId> watch_session(const std::string& name, uint32_t interval_ms,
                                        std::function<void(const api::Session&, bool last)>) = 0;
  // Called once for each watch, also for one that has ended; never from inside a callback.
  virtual void unwatch(WatchId id) = 0;

  // `request` was checked, and has its defaults. An empty name: the newest that records. Ends with
  // unwatch_calls(), as above.
  virtual Result<WatchId> watch_calls(const api::WatchCallsRequest& request,
                                      CallWatcher watcher) = 0;
  virtual void unwatch_calls(WatchId id) = 0;

  virtual void open_file(const std::string& name, const std::string& path,
                         Callback<std::shared_ptr<FileReader>> done) = 0;
  // Answers when the new session is there, or nothing is left of it.
  virtual void convert_session(const std::string& name, uint32_t atf_version,
                               ConversionProgress progress, Callback<api::ConversionEnd> done) = 0;
};

}  // namespace collect::control
