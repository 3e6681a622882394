// Where daemon/attach, which finds agents on devices, meets daemon/ingest, which dials them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/attach.h"
#include "daemon/collector/agents/watches.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

class DeviceBridge final : private attach::DeviceObserver {
 public:
  // Without `devices` none is looked for.
  static Result<std::unique_ptr<DeviceBridge>> create(const attach::AttachOptions& devices,
                                                      Watches& watches);

  Status run(ingest::Ingest& ingest);  // which outlives stop()
  void stop() { attach_->stop(); }

  attach::Attach& attach() { return *attach_; }
  std::vector<api::Device> devices(const std::string& match);
  Result<api::Device> device(const std::string& name);
  std::vector<api::DeviceServer> servers() const;
  void agent_changed(const ingest::AgentSnapshot& agent);

 private:
  explicit DeviceBridge(Watches& watches) : watches_(watches) {}

  void device_changed(const attach::DeviceView& device, bool is_new) override;
  void device_removed(const attach::DeviceView& device) override;
  void endpoint_found(const std::string& address) override;
  void endpoint_gone(const std::string& address) override;

  Watches& watches_;
  ingest::Ingest* ingest_ = nullptr;  // from run() on
  std::unique_ptr<attach::Attach> attach_;
};

}  // namespace collect::daemon
