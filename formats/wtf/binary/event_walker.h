// Walks one event buffer front to back and learns the definitions in it. No allocation but for
// those. Two forms: the words of format 10, the packed bytes of legacy files.
#pragma once

#include <cstdint>

#include "formats/core/bytes.h"
#include "formats/wtf/binary/event.h"
#include "formats/wtf/binary/type_table.h"
#include "formats/wtf/finding.h"

namespace collect::wtf {

class EventWalker {
 public:
  // All of them outlive the walker. `offset` is where `buffer` begins in the file. `cut_off` says
  // that the file ends within the buffer: its last event, if not whole, is left out then.
  EventWalker(Bytes buffer, uint64_t offset, Encoding encoding, const StringTable& strings,
              TypeTable& types, Findings& findings, bool cut_off = false)
      : buffer_(buffer),
        offset_(offset),
        encoding_(encoding),
        cut_off_(cut_off),
        strings_(&strings),
        types_(&types),
        findings_(&findings) {}

  // False at the end, and at an event that cannot be read, which ends in a finding: rest() says how
  // much is left then. A definition takes effect before next() returns it.
  bool next(Event& event) {
    if (encoding_ == Encoding::kLegacy) return next_legacy(event);
    const size_t left = buffer_.size() - at_;
    if (left < kEventHeaderBytes) return end(left);
    const uint8_t* const at = buffer_.data() + at_;
    const EventType* const type = types_->find(load_le<uint32_t>(at));
    if (type == nullptr) return undefined(load_le<uint32_t>(at));
    event.type = type;
    event.time_us = load_le<uint32_t>(at + 4);
    event.offset = offset_ + at_;
    const size_t arguments = left - kEventHeaderBytes;
    if (type->fixed_size && type->argument_bytes <= arguments) [[likely]] {
      event.cut = false;
      event.argument_bytes = Bytes(at + kEventHeaderBytes, type->argument_bytes);
      at_ += kEventHeaderBytes + type->argument_bytes;
    } else {
      if (!take_variable(event, arguments)) return false;
    }
    event.encoding = Encoding::kWords;
    event.strings = strings_;
    if (type->role == Role::kDefine) [[unlikely]]
      define(event);
    return true;
  }

  // Bytes from the first event that next() has not passed.
  Bytes rest() const { return buffer_.subspan(at_); }

 private:
  bool next_legacy(Event& event);
  bool end(size_t left);
  bool undefined(uint32_t wire_id);
  bool left_out(const EventType& type);
  bool take_variable(Event& event, size_t arguments);
  void define(const Event& event);

  Bytes buffer_;
  uint64_t offset_;
  Encoding encoding_;
  bool cut_off_;
  const StringTable* strings_;
  TypeTable* types_;
  Findings* findings_;
  size_t at_ = 0;
};

}  // namespace collect::wtf
