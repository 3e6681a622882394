#include "agent/drain/link/control_sender.h"

namespace collect::agent {

void ControlSender::send(uint64_t now_ms, wire::FrameType type, const pb_msgdesc_t* fields,
                         const void* message) {
  Channel& control = link_.control();
  if (control.step != ChannelStep::kOpen) return;
  if (control.out.push(type, fields, message)) {
    (void)link_.flush(now_ms, control);
  } else {
    link_.break_link(now_ms, "the collector does not read the control channel");
  }
}

}  // namespace collect::agent
