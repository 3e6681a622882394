// What becomes of a connection after one of its frames.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>

#include "formats/core/result.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

struct Refusal {
  wire::RefuseCode code{};
  std::string reason;
  bool retry = false;
};
// On a frame; empty: the connection continues.
using Verdict = std::optional<Refusal>;
inline Refusal violation(std::string what) {
  return {wire::REFUSE_PROTOCOL, std::move(what), true};
}
// The principal has too much: the connection ends, and may come again.
inline Refusal over_budget(std::string what) {
  return {wire::REFUSE_LIMIT, std::move(what), true};
}

// The frame's message; kDamaged when its bytes are no such message.
template <class Message>
Result<Message> parse_body(const wire::Frame& frame) {
  Message message;
  if (!message.ParseFromArray(frame.body.data(), static_cast<int>(frame.body.size()))) {
    return Error{Code::kDamaged,
                 fmt::format("frame type {}: the body is no {}", static_cast<unsigned>(frame.type),
                             message.GetTypeName())};
  }
  return message;
}

// The verdict of `judge` on a frame's message, or on bytes that are no such message.
template <class Part, class Message>
Verdict verdict_on(const wire::Frame& frame, Part& part, Verdict (Part::*judge)(const Message&)) {
  const Result<Message> message = parse_body<Message>(frame);
  if (!message.ok()) return violation(message.error().message);
  return (part.*judge)(*message);
}
// The verdict on a frame that the receiver does not take there.
inline Verdict misplaced(const wire::Frame& frame, const char* channel) {
  if (!wire::is_known(frame.type)) return std::nullopt;
  return violation(fmt::format("frame type {} does not belong on the {} channel",
                               static_cast<unsigned>(frame.type), channel));
}

}  // namespace collect::ingest
