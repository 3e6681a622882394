#include "daemon/ctl/dump/event_text.h"

#include <fmt/core.h>

#include "daemon/ctl/terminal/terminal.h"
#include "storage/select/detail_registers.h"

namespace collect::ctl {
namespace {

constexpr size_t kTimeWidth = 14;
constexpr size_t kDurationWidth = 12;

void put_payload_json(TextBuffer& out, const atf::DetailRecord& record) {
  const auto detail = select::function_of(record);
  if (!detail) {
    out.put("\"payload\":\"");
    out.hex_bytes(record.payload);
    out.put('"');
    return;
  }
  out.put("\"registers\":{");
  const char* comma = "";
  select::for_each_register(record, *detail, [&](const select::Register& reg) {
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

void put_payload_text(TextBuffer& out, const atf::DetailRecord& record) {
  const auto detail = select::function_of(record);
  if (!detail) {
    out.put(" payload[");
    out.dec(record.payload.size());
    out.put("] ");
    out.hex_bytes(record.payload);
    return;
  }
  select::for_each_register(record, *detail, [&](const select::Register& reg) {
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

// A part of an event's object: from its kind to the id of its function.
std::string_view kind_key(atf::EventKind kind) {
  switch (kind) {
    case atf::EventKind::kCall:
      return R"(,"kind":"call","function_id":")";
    case atf::EventKind::kReturn:
      return R"(,"kind":"return","function_id":")";
    case atf::EventKind::kException:
      return R"(,"kind":"exception","function_id":")";
  }
  return R"(,"kind":"unknown","function_id":")";
}

}  // namespace

JsonEvents::JsonEvents(const read::NameTable& names, const std::vector<PrintedThread>& threads,
                       const select::DeviceClock* clock, const std::string& session)
    : names_(names), clock_(clock) {
  const std::string opening =
      fmt::format("{}{}\"thread\":", kJsonLineStart,
                  clock == nullptr ? "" : fmt::format("\"session\":{},", json_text(session)));
  for (const PrintedThread& thread : threads) {
    prefixes_.push_back(fmt::format("{}{},\"tid\":{}", opening, thread.n, thread.tid));
    has_depth_.push_back(thread.has_depth);
  }
}

void JsonEvents::put_times(TextBuffer& out, uint64_t ts_ns, uint64_t time_ns) {
  out.put(",\"ts_ns\":");
  out.dec(ts_ns);
  if (clock_ == nullptr) return;
  out.put(",\"time_ns\":");
  out.dec(time_ns);
  if (!clock_->is_compared()) return;
  out.put(",\"uncertainty_ns\":");
  out.dec(clock_->uncertainty_ns(ts_ns));
}

void JsonEvents::print(TextBuffer& out, size_t thread, const storage::Stall& stall,
                       uint64_t time_ns) {
  out.put(prefixes_[thread]);
  put_times(out, stall.first_ns, time_ns);
  out.put(",\"kind\":\"stall\",\"stall\":\"");
  out.put(storage::stall_kind_name(stall.kind));
  out.put("\",\"last_ns\":");
  out.dec(stall.last_ns);
  out.put(",\"stalled_ns\":");
  out.dec(stall.stalled_ns);
  out.put(",\"joined\":");
  out.dec(stall.count);
  if (stall.place != 0 && stall.kind == storage::StallKind::kSample) {
    std::string name;
    names_.append_name(name, stall.place);
    out.put(",\"function_id\":\"");
    out.hex(stall.place);
    out.put("\",\"name\":");
    out.json_string(name);
  } else if (stall.place != 0) {
    out.put(",\"lock\":\"");
    out.hex(stall.place);
    out.put('"');
  }
  if (stall.owner != 0) {
    out.put(",\"owner_tid\":");
    out.dec(stall.owner);
  }
  out.put("}\n");
}

void JsonEvents::print(TextBuffer& out, size_t thread, uint64_t seq, const atf::IndexEvent& event,
                       uint64_t time_ns, const atf::DetailRecord* detail) {
  const Text& text = functions_.of(event.function_id, [this](uint64_t id) {
    std::string name;
    names_.append_name(name, id);
    TextBuffer made;
    made.hex(id);
    made.put("\",\"name\":");
    made.json_string(name);
    return Text{std::string(made.text())};
  });
  out.put(prefixes_[thread]);
  out.put(",\"seq\":");
  out.dec(seq);
  put_times(out, event.timestamp_ns, time_ns);
  out.put(kind_key(event.kind));
  out.put(text.function);
  if (has_depth_[thread]) {
    out.put(",\"call_depth\":");
    out.dec(event.call_depth);
  }
  if (event.detail_seq != atf::kNoDetail) {
    out.put(",\"detail_seq\":");
    out.dec(event.detail_seq);
  }
  if (detail != nullptr) {
    out.put(",\"detail\":{");
    put_payload_json(out, *detail);
    out.put('}');
  }
  out.put("}\n");
}

CallLocation CallPlaces::move(size_t thread, const atf::IndexEvent& event) {
  calls::OpenCalls& open = open_[thread];
  const calls::Moment now{event.timestamp_ns, event.timestamp_ns};
  CallLocation place{depth(thread)};
  if (event.kind == atf::EventKind::kCall) {
    open.call(slots_.slot_of(event.function_id), now);
  } else if (event.kind == atf::EventKind::kReturn || event.kind == atf::EventKind::kException) {
    open.leave(slots_.slot_of(event.function_id), now, calls::EndReason::kReturned,
               [&](const calls::EndedCall& ended) {
                 if (!ended.has_own_end()) return;
                 place.has_duration = true;
                 place.duration_ns = ended.total_ns;
               });
    place.depth = depth(thread);
  }
  return place;
}

TextEvents::TextEvents(const read::NameTable& names, std::vector<PrintedThread> threads,
                       uint64_t origin_ns, Margin margin)
    : names_(names), threads_(std::move(threads)), origin_ns_(origin_ns), margin_(margin) {}

void TextEvents::begin_thread(TextBuffer& out, size_t thread, uint64_t events) {
  out.put("# thread ");
  out.dec(threads_[thread].n);
  out.put(", tid ");
  out.dec(threads_[thread].tid);
  if (!threads_[thread].name.empty()) {
    out.put(", \"");
    out.printable(threads_[thread].name);
    out.put('"');
  }
  out.put(", ");
  out.count(events, "event");
  out.put('\n');
}

void TextEvents::print_margin(TextBuffer& out, size_t thread, std::optional<int64_t> since_ns,
                              std::optional<uint64_t> duration_ns, uint32_t depth) {
  if (since_ns) {
    out.micros(*since_ns, kTimeWidth);
  } else {
    out.repeat(' ', kTimeWidth);
  }
  if (duration_ns) {
    out.micros(static_cast<int64_t>(*duration_ns), kDurationWidth);
  } else {
    out.repeat(' ', kDurationWidth);
  }
  if (margin_.thread) {
    out.put(" [");
    if (margin_.session != 0) {
      out.dec(margin_.session);
      out.put(':');
    }
    out.dec(threads_[thread].n, 3);
    out.put(']');
  }
  out.put(" | ");
  out.repeat(' ', call_indent(depth));
}

void TextEvents::print(TextBuffer& out, size_t thread, const storage::Stall& stall,
                       uint64_t time_ns, uint32_t depth) {
  print_margin(out, thread, static_cast<int64_t>(time_ns - origin_ns_), stall.stalled_ns, depth);
  switch (stall.kind) {
    case storage::StallKind::kPageWait:
      out.put("~ waited for the collector");
      break;
    case storage::StallKind::kStopped:
      out.put("~ the process was stopped");
      break;
    case storage::StallKind::kSuspended:
      out.put("~ the machine slept");
      break;
    case storage::StallKind::kBlocked:
      out.put("~ blocked");
      break;
    case storage::StallKind::kPreempted:
      out.put("~ preempted");
      break;
    case storage::StallKind::kLock:
      out.put("~ waited for a lock");
      if (stall.place != 0) {
        out.put(" at ");
        out.hex(stall.place);
      }
      if (stall.owner != 0) {
        out.put(" that thread ");
        out.dec(stall.owner);
        out.put(" had");
      }
      break;
    case storage::StallKind::kSample: {
      std::string name = "(not known)";
      if (stall.place != 0) {
        name.clear();
        names_.append_name(name, stall.place);
      }
      out.put("~ was in ");
      out.printable(name);
      break;
    }
  }
  if (stall.count > 1) {
    out.put(", ");
    out.dec(stall.count);
    out.put(" times in ");
    out.micros(static_cast<int64_t>(stall.last_ns - stall.first_ns), 0);
    out.put(" us");
  }
  out.put('\n');
}

void TextEvents::print(TextBuffer& out, size_t thread, const atf::IndexEvent& event,
                       uint64_t time_ns, const CallLocation& place,
                       const atf::DetailRecord* detail) {
  const Text& text = functions_.of(event.function_id, [this](uint64_t id) {
    std::string name;
    names_.append_name(name, id);
    // Demangled C++ names bring their parameter list along.
    const bool has_parentheses = name.find('(') != std::string::npos;
    Text made{"", printable(name)};
    made.call = made.name + (has_parentheses ? " {\n" : "() {\n");
    return made;
  });
  std::optional<uint64_t> duration_ns;
  if (place.has_duration) duration_ns = place.duration_ns;
  print_margin(out, thread, static_cast<int64_t>(time_ns - origin_ns_), duration_ns, place.depth);
  switch (event.kind) {
    case atf::EventKind::kCall:
      out.put(text.call);
      break;
    case atf::EventKind::kReturn:
      out.put("} ");
      out.put(text.name);
      out.put('\n');
      break;
    case atf::EventKind::kException:
      out.put("} ");
      out.put(text.name);
      out.put(" ! exception\n");
      break;
    default:
      out.put("? kind ");
      out.dec(event.kind_raw);
      out.put(' ');
      out.put(text.name);
      out.put('\n');
  }
  if (detail == nullptr) return;
  print_margin(out, thread, std::nullopt, std::nullopt, place.depth + 1);
  out.put("detail ");
  out.dec(event.detail_seq);
  out.put(':');
  put_payload_text(out, *detail);
  out.put('\n');
}

void print_detail_json(TextBuffer& out, uint64_t seq, const atf::DetailRecord& record) {
  out.put(kJsonLineStart);
  out.put("\"detail_seq\":");
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

void print_detail_text(TextBuffer& out, uint64_t seq, const atf::DetailRecord& record) {
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
