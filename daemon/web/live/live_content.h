// What collectord shows: its sessions, agents and devices, and how they are steered.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/web/live/actions.h"
#include "daemon/web/live/live_view.h"
#include "daemon/web/web_content.h"

namespace collect::web {

class LiveContent final : public WebContent {
 public:
  // `collector` outlives it and every answer.
  explicit LiveContent(control::CollectorApi& collector)
      : collector_(collector), view_(collector), actions_(collector) {}

  std::optional<PageRequest> find_session(std::string_view name) override;
  std::string look() override { return view_.look(LiveView::Clock::now()); }
  WebActions* actions() override { return &actions_; }

 private:
  control::CollectorApi& collector_;
  LiveView view_;
  Actions actions_;
};

}  // namespace collect::web
