// Markers and containers: what is asked of the sessions that record now, and what each answered.
#pragma once

#include "daemon/collector/agents/registry.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

class MarkerControl {
 public:
  // Serves AnnotateRequest and RollContainerRequest. All outlive it.
  MarkerControl(const Registry& registry, ingest::Ingest& ingest, control::Methods& methods);

 private:
  void annotate(const api::AnnotateRequest& request, control::Callback<api::AnnotateResponse> done);
  void roll_container(const api::RollContainerRequest& request,
                      control::Callback<api::RollContainerResponse> done);

  const Registry& registry_;
  ingest::Ingest& ingest_;
};

}  // namespace collect::daemon
