#include "daemon/ctl/event_text.h"

#include <algorithm>

#include "formats/atf/payload.h"

namespace collect::ctl {
namespace {

constexpr size_t kMaxIndent = 200;  // columns; deeper calls stay at the edge
constexpr size_t kTimeWidth = 14;
constexpr size_t kDurationWidth = 12;

struct Register {
  const char* name;
  uint64_t value;
};

// The registers that the record has. Records of others set no flags: all their fields count.
template <class F>
void for_each_register(const atf::DetailRecord& record, const atf::FunctionDetail& detail, F&& f) {
  constexpr const char* kNames[8] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
  const bool said = detail.form == atf::PayloadForm::kDocumented && record.flags != 0;
  const auto valid = [&](uint32_t bit) { return !said || (record.flags & bit) != 0; };
  for (uint32_t i = 0; i < 8; ++i) {
    if (valid(uint32_t{atf::kDetailX0Valid} << i)) f(Register{kNames[i], detail.x_regs[i]});
  }
  if (valid(atf::kDetailLrValid)) f(Register{"lr", detail.lr});
  if (valid(atf::kDetailFpValid)) f(Register{"fp", detail.fp});
  if (valid(atf::kDetailSpValid)) f(Register{"sp", detail.sp});
}

std::optional<atf::FunctionDetail> function_of(const atf::DetailRecord& record) {
  if (record.type != atf::DetailType::kFunctionCall &&
      record.type != atf::DetailType::kFunctionReturn) {
    return std::nullopt;
  }
  return atf::decode_function_payload(record.payload);
}

void put_payload_json(TextOut& out, const atf::DetailRecord& record) {
  const auto detail = function_of(record);
  if (!detail) {
    out.put("\"payload\":\"");
    out.hex_bytes(record.payload);
    out.put('"');
    return;
  }
  out.put("\"registers\":{");
  const char* comma = "";
  for_each_register(record, *detail, [&](const Register& reg) {
    out.put(comma);
    comma = ",";
    out.put('"');
    out.put(reg.name);
    out.put("\":\"");
    out.hex(reg.value);
    out.put('"');
  });
  out.put("},\"stack\":\"");
  out.hex_bytes(detail->stack);
  out.put('"');
}

void put_payload_text(TextOut& out, const atf::DetailRecord& record) {
  const auto detail = function_of(record);
  if (!detail) {
    out.put(" payload[");
    out.dec(record.payload.size());
    out.put("] ");
    out.hex_bytes(record.payload);
    return;
  }
  for_each_register(record, *detail, [&](const Register& reg) {
    out.put(' ');
    out.put(reg.name);
    out.put('=');
    out.hex(reg.value);
  });
  if (detail->stack.empty()) return;
  out.put(" stack[");
  out.dec(detail->stack.size());
  out.put("] ");
  out.hex_bytes(detail->stack);
}

}  // namespace

JsonEvents::JsonEvents(TextOut& out, const NameTable& names,
                       const std::vector<PrintedThread>& threads, const DeviceClock* clock,
                       const std::string& session)
    : out_(out), names_(names), clock_(clock) {
  const std::string opening =
      clock == nullptr ? "{\"thread\":" : "{\"session\":" + json_text(session) + ",\"thread\":";
  for (const PrintedThread& thread : threads) {
    prefixes_.push_back(opening + std::to_string(thread.n) +
                        ",\"tid\":" + std::to_string(thread.tid) + ",\"seq\":");
    has_depth_.push_back(thread.has_depth);
  }
}

void JsonEvents::put_times(uint64_t ts_ns, uint64_t time_ns) {
  out_.put(",\"ts_ns\":");
  out_.dec(ts_ns);
  if (clock_ == nullptr) return;
  out_.put(",\"time_ns\":");
  out_.dec(time_ns);
  out_.put(",\"uncertainty_ns\":");
  if (clock_->is_compared()) {
    out_.dec(clock_->uncertainty_ns(ts_ns));
  } else {
    out_.put("null");
  }
}

void JsonEvents::print(size_t thread, const storage::Stall& stall, uint64_t time_ns) {
  out_.put(prefixes_[thread]);
  out_.put("null");
  put_times(stall.first_ns, time_ns);
  out_.put(",\"kind\":\"stall\",\"stall\":\"");
  out_.put(storage::stall_kind_name(stall.kind));
  out_.put("\",\"last_ns\":");
  out_.dec(stall.last_ns);
  out_.put(",\"stalled_ns\":");
  out_.dec(stall.stalled_ns);
  out_.put(",\"joined\":");
  out_.dec(stall.count);
  out_.put("}\n");
}

void JsonEvents::print(size_t thread, uint64_t seq, const atf::IndexEvent& event, uint64_t time_ns,
                       const std::optional<atf::DetailRecord>& detail) {
  out_.put(prefixes_[thread]);
  out_.dec(seq);
  put_times(event.timestamp_ns, time_ns);
  out_.put(",\"kind\":\"");
  out_.put(atf::to_text(event.kind));
  out_.put("\",\"function_id\":\"");
  out_.hex(event.function_id);
  out_.put("\",\"name\":");
  out_.json_string(names_.name_of(event.function_id));
  if (has_depth_[thread]) {
    out_.put(",\"call_depth\":");
    out_.dec(event.call_depth);
  }
  out_.put(",\"detail_seq\":");
  if (event.detail_seq == atf::kNoDetail) {
    out_.put("null");
  } else {
    out_.dec(event.detail_seq);
  }
  if (detail) {
    out_.put(",\"detail\":{");
    put_payload_json(out_, *detail);
    out_.put('}');
  }
  out_.put("}\n");
}

TextEvents::TextEvents(TextOut& out, const NameTable& names, std::vector<PrintedThread> threads,
                       uint64_t origin_ns, Margin margin)
    : out_(out),
      names_(names),
      threads_(std::move(threads)),
      origin_ns_(origin_ns),
      margin_(margin),
      stacks_(threads_.size()) {}

void TextEvents::begin_thread(size_t thread, uint64_t events) {
  out_.put("# thread ");
  out_.dec(threads_[thread].n);
  out_.put(", tid ");
  out_.dec(threads_[thread].tid);
  if (!threads_[thread].name.empty()) {
    out_.put(", \"");
    out_.printable(threads_[thread].name);
    out_.put('"');
  }
  out_.put(", ");
  out_.dec(events);
  out_.put(" events\n");
}

TextEvents::Moved TextEvents::move(size_t thread, const atf::IndexEvent& event) {
  CallStack& stack = stacks_[thread];
  Moved moved{stack.depth(), {}};
  if (event.kind == atf::EventKind::kCall) {
    stack.call(slots_.slot_of(event.function_id), event.timestamp_ns);
  } else if (event.kind == atf::EventKind::kReturn || event.kind == atf::EventKind::kException) {
    stack.leave(slots_.slot_of(event.function_id), event.timestamp_ns,
                [&](const CallStack::Ended& ended) {
                  if (ended.returned) moved.duration_ns = ended.total_ns;
                });
    moved.depth = stack.depth();
  }
  return moved;
}

void TextEvents::pass(size_t thread, const atf::IndexEvent& event) {
  move(thread, event);
}

void TextEvents::print_margin(size_t thread, std::optional<int64_t> since_ns,
                              std::optional<uint64_t> duration_ns, size_t depth) {
  if (since_ns) {
    out_.micros(*since_ns, kTimeWidth);
  } else {
    out_.repeat(' ', kTimeWidth);
  }
  if (duration_ns) {
    out_.micros(static_cast<int64_t>(*duration_ns), kDurationWidth);
  } else {
    out_.repeat(' ', kDurationWidth);
  }
  if (margin_.thread) {
    out_.put(" [");
    if (margin_.session != 0) {
      out_.dec(margin_.session);
      out_.put(':');
    }
    out_.dec(threads_[thread].n, 3);
    out_.put(']');
  }
  out_.put(" | ");
  out_.repeat(' ', std::min(2 * depth, kMaxIndent));
}

void TextEvents::print(size_t thread, const storage::Stall& stall, uint64_t time_ns) {
  print_margin(thread, static_cast<int64_t>(time_ns - origin_ns_), stall.stalled_ns,
               stacks_[thread].depth());
  switch (stall.kind) {
    case storage::StallKind::kPageWait:
      out_.put("~ waited for the collector");
      break;
    case storage::StallKind::kStopped:
      out_.put("~ the process was stopped");
      break;
    case storage::StallKind::kSuspended:
      out_.put("~ the machine slept");
      break;
  }
  if (stall.count > 1) {
    out_.put(", ");
    out_.dec(stall.count);
    out_.put(" times in ");
    out_.micros(static_cast<int64_t>(stall.last_ns - stall.first_ns), 0);
    out_.put(" us");
  }
  out_.put('\n');
}

void TextEvents::print(size_t thread, const atf::IndexEvent& event, uint64_t time_ns,
                       const std::optional<atf::DetailRecord>& detail) {
  const Moved moved = move(thread, event);
  print_margin(thread, static_cast<int64_t>(time_ns - origin_ns_), moved.duration_ns, moved.depth);
  const std::string_view name = names_.name_of(event.function_id);
  // Demangled C++ names bring their parameter list along.
  const std::string_view parentheses =
      name.find('(') == std::string_view::npos ? std::string_view("()") : std::string_view();
  switch (event.kind) {
    case atf::EventKind::kCall:
      out_.printable(name);
      out_.put(parentheses);
      out_.put(" {");
      break;
    case atf::EventKind::kReturn:
      out_.put("} ");
      out_.printable(name);
      break;
    case atf::EventKind::kException:
      out_.put("} ");
      out_.printable(name);
      out_.put(" ! exception");
      break;
    default:
      out_.put("? kind ");
      out_.dec(event.kind_raw);
      out_.put(' ');
      out_.printable(name);
  }
  out_.put('\n');
  if (!detail) return;
  print_margin(thread, std::nullopt, std::nullopt, moved.depth + 1);
  out_.put("detail ");
  out_.dec(event.detail_seq);
  out_.put(':');
  put_payload_text(out_, *detail);
  out_.put('\n');
}

void print_detail_json(TextOut& out, uint64_t seq, const atf::DetailRecord& record) {
  out.put("{\"detail_seq\":");
  out.dec(seq);
  out.put(",\"index_seq\":");
  out.dec(record.index_seq);
  out.put(",\"ts_ns\":");
  out.dec(record.timestamp_ns);
  out.put(",\"type\":");
  out.dec(static_cast<uint64_t>(record.type));
  out.put(",\"flags\":");
  out.dec(record.flags);
  out.put(',');
  put_payload_json(out, record);
  out.put("}\n");
}

void print_detail_text(TextOut& out, uint64_t seq, const atf::DetailRecord& record) {
  out.put("detail ");
  out.dec(seq);
  out.put(": event ");
  out.dec(record.index_seq);
  out.put(", ");
  out.dec(record.timestamp_ns);
  out.put(" ns, type ");
  out.dec(static_cast<uint64_t>(record.type));
  out.put(':');
  put_payload_text(out, record);
  out.put('\n');
}

}  // namespace collect::ctl
