// Thread files for tests, made with the writer: a stack of calls with details on some of them. What
// the writer writes is checked elsewhere against the specification and the independent checker.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/atf/writer.h"

namespace collect::atf::testing {

struct ThreadPlan {
  Version version = Version::kV2;
  uint32_t thread_id = 4711;
  uint64_t start_ns = 1000;
  uint64_t step_ns = 10;
  size_t events = 20;
  size_t detail_every = 0;  // 0: no detail file
  size_t stack_bytes = 0;   // of each record; 0: 0 to 8
  bool finalize = true;
  bool checksum = true;
};

struct ThreadBytes {
  std::vector<uint8_t> index;
  std::vector<uint8_t> detail;  // empty when there is none
};

inline void append(std::vector<uint8_t>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

inline IndexEvent planned_event(const ThreadPlan& plan, size_t i) {
  IndexEvent event;
  event.timestamp_ns = plan.start_ns + i * plan.step_ns;
  event.function_id = (uint64_t{i % 5} << 32) | (0x100 + i % 3);
  event.kind = i % 2 == 0 ? EventKind::kCall : EventKind::kReturn;
  event.thread_id = plan.thread_id;
  event.call_depth = static_cast<uint32_t>(i % 2);
  return event;
}

inline std::vector<uint8_t> planned_record(const ThreadPlan& plan, size_t i) {
  const IndexEvent event = planned_event(plan, i);
  FunctionPayload payload{};
  payload.function_id = event.function_id;
  for (size_t r = 0; r < 8; ++r) payload.x_regs[r] = i * 16 + r;
  payload.lr = 0x1111;
  payload.fp = 0x2222;
  payload.sp = 0x3333;
  const std::vector<uint8_t> stack(plan.stack_bytes != 0 ? plan.stack_bytes : i % 9,
                                   static_cast<uint8_t>(i));
  std::vector<uint8_t> body(kFunctionPayloadBytes + stack.size());
  encode_function_payload(payload, stack, body);
  DetailRecord record;
  record.type =
      event.kind == EventKind::kCall ? DetailType::kFunctionCall : DetailType::kFunctionReturn;
  record.flags = kDetailLrValid;
  record.index_seq = i;
  record.thread_id = plan.thread_id;
  record.timestamp_ns = event.timestamp_ns;
  record.payload = body;
  std::vector<uint8_t> out(kDetailHeaderBytes + body.size());
  encode_detail_record(plan.version, record, out);
  return out;
}

inline ThreadBytes build_thread(const ThreadPlan& plan) {
  std::vector<uint8_t> events, records;
  std::vector<size_t> linked;
  for (size_t i = 0; i < plan.events; ++i) {
    IndexEvent event = planned_event(plan, i);
    if (plan.detail_every != 0 && i % plan.detail_every == 0) {
      event.detail_seq = linked.size();
      linked.push_back(i);
      append(records, planned_record(plan, i));
    }
    uint8_t bytes[kEventBytes];
    encode_index_event(plan.version, event, bytes);
    append(events, bytes);
  }
  const auto time_of = [&](size_t i) { return plan.start_ns + i * plan.step_ns; };

  ThreadBytes made;
  uint8_t block[kHeaderBytes];
  IndexHeader header{plan.version, Arch::kX86_64, Os::kLinux, ClockType::kBoottime};
  header.thread_id = plan.thread_id;
  header.footer_offset = kEventsOffset;
  IndexFooter footer;
  if (plan.finalize) {
    header.flags = linked.empty() ? 0 : kIndexFlagHasDetailFile;
    header.footer_offset = kEventsOffset + events.size();
    header.event_count = footer.event_count = plan.events;
    footer.bytes_written = events.size();
    if (plan.events != 0) {
      header.time_start_ns = footer.time_start_ns = time_of(0);
      header.time_end_ns = footer.time_end_ns = time_of(plan.events - 1);
    }
    footer.checksum = plan.checksum ? section_checksum(plan.version, events) : 0;
  }
  encode_index_header(header, block);
  append(made.index, block);
  append(made.index, events);
  encode_index_footer(footer, block);
  if (plan.finalize) append(made.index, block);
  if (linked.empty()) return made;

  DetailFileHeader detail{plan.version, Arch::kX86_64, Os::kLinux};
  detail.thread_id = plan.thread_id;
  DetailFooter detail_footer;
  if (plan.finalize) {
    detail.event_count = detail_footer.event_count = linked.size();
    detail.bytes_length = detail_footer.bytes_length = records.size();
    detail.index_seq_start = linked.front();
    detail.index_seq_end = linked.back();
    detail_footer.time_start_ns = time_of(linked.front());
    detail_footer.time_end_ns = time_of(linked.back());
    detail_footer.checksum = plan.checksum ? section_checksum(plan.version, records) : 0;
  }
  encode_detail_header(detail, block);
  append(made.detail, block);
  append(made.detail, records);
  encode_detail_footer(detail_footer, block);
  if (plan.finalize) append(made.detail, block);
  return made;
}

}  // namespace collect::atf::testing
