// Frames to the agent on its control channel, for the parts of a Peer. Its io thread only.
#pragma once

#include <google/protobuf/message_lite.h>

#include "proto/wire/layout.h"

namespace collect::ingest {

class ControlSender {
 public:
  virtual ~ControlSender() = default;
  // Both channels of the agent are welcomed.
  virtual bool connected() const = 0;
  // Nothing happens while the channel is not welcomed. Sending may fail and end it.
  virtual void send(wire::FrameType type, const google::protobuf::MessageLite& message) = 0;
};

}  // namespace collect::ingest
