#include "formats/wtf/binary/event_walker.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::wtf {
namespace {

constexpr size_t kLegacyEventHeaderBytes = 6;  // u16 wire id, u32 time

}  // namespace

bool EventWalker::end(size_t left) {
  if (left != 0) {
    findings_->add(Severity::kError, cut_off_ ? Rule::kTruncated : Rule::kEventTrailing,
                   offset_ + at_,
                   fmt::format("{} bytes behind the last event, too few for another", left));
  }
  return false;
}

bool EventWalker::undefined(uint32_t wire_id) {
  findings_->add(
      Severity::kError, Rule::kWireId, offset_ + at_,
      fmt::format("wire id {} is not defined: the last {} bytes of the buffer are unreadable",
                  wire_id, buffer_.size() - at_));
  return false;
}

// Events with arrays, and the last event of a buffer that ends too early.
bool EventWalker::take_variable(Event& event, size_t arguments) {
  const Bytes rest(buffer_.data() + at_ + kEventHeaderBytes, arguments);
  Arguments walk(*event.type, rest, Encoding::kWords, strings_);
  Value value;
  while (walk.next(value)) {
  }
  event.cut = walk.consumed() > arguments;
  if (event.cut && cut_off_) return left_out(*event.type);
  const size_t taken = static_cast<size_t>(std::min<uint64_t>(walk.consumed(), arguments));
  event.argument_bytes = rest.first(taken);
  if (event.cut) {
    findings_->add(
        Severity::kError, Rule::kEventCut, offset_ + at_,
        fmt::format("the arguments of the last event, '{}', are cut off at the end of the buffer",
                    safe_text(event.type->name)));
  }
  at_ += kEventHeaderBytes + taken;
  return true;
}

bool EventWalker::left_out(const EventType& type) {
  findings_->add(
      Severity::kError, Rule::kTruncated, offset_ + at_,
      fmt::format("the file ends within an event '{}', which is left out", safe_text(type.name)));
  return false;
}

bool EventWalker::next_legacy(Event& event) {
  const size_t left = buffer_.size() - at_;
  if (left < kLegacyEventHeaderBytes) return end(left);
  const uint8_t* const at = buffer_.data() + at_;
  const uint32_t wire_id = __builtin_bswap16(load_le<uint16_t>(at));
  const EventType* const type = types_->find(wire_id);
  if (type == nullptr) return undefined(wire_id);
  const Bytes rest(at + kLegacyEventHeaderBytes, left - kLegacyEventHeaderBytes);
  Arguments walk(*type, rest, Encoding::kLegacy, strings_);
  Value value;
  while (walk.next(value)) {
  }
  if (walk.consumed() > rest.size()) return left_out(*type);
  event.type = type;
  event.time_us = __builtin_bswap32(load_le<uint32_t>(at + 2));
  event.offset = offset_ + at_;
  event.cut = false;
  event.encoding = Encoding::kLegacy;
  event.argument_bytes = rest.first(static_cast<size_t>(walk.consumed()));
  event.strings = strings_;
  at_ += kLegacyEventHeaderBytes + static_cast<size_t>(walk.consumed());
  if (type->role == Role::kDefine) define(event);
  return true;
}

void EventWalker::define(const Event& event) {
  if (event.cut) return;
  Arguments walk = event.arguments();
  Value wire_id, event_class, flags, name, signature;
  walk.next(wire_id);
  walk.next(event_class);
  walk.next(flags);
  walk.next(name);
  walk.next(signature);
  const std::string name_text = event.encoding == Encoding::kLegacy ? name.utf8() : std::string();
  Definition definition;
  definition.wire_id = static_cast<uint32_t>(wire_id.integer());
  definition.event_class = static_cast<uint16_t>(event_class.integer());
  definition.flags = static_cast<uint32_t>(flags.integer());
  if (name.present()) definition.name = event.encoding == Encoding::kLegacy ? name_text : name.text;
  if (signature.present()) definition.signature = signature.text;
  types_->define(definition, event.offset, *findings_);
}

}  // namespace collect::wtf
