// The functions of agent/ring/recorder.h over plain memory, so that the drain thread can be tested
// alone: the test says what was recorded, and sees what was acknowledged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/ring/recorder.h"

namespace collect::agent::fake {

// Forgets everything. No drain thread may run.
void reset();

// Each returns or takes a stream id.
uint32_t add_stream(uint32_t thread_id, const std::string& name);
void rename_stream(uint32_t stream_id, const std::string& name);
// Index record n of a stream: timestamp 1000 + n, function id = stream id << 32 | n.
void write_index(uint32_t stream_id, uint32_t count);
// Detail records of 24 + n % 100 bytes, the first word their length, the rest the low byte of n.
void write_detail(uint32_t stream_id, uint32_t count);
void lose(uint32_t stream_id, Lane lane, uint64_t count, uint32_t reasons);
void lose_index(uint32_t stream_id, uint64_t count, uint32_t reasons);
void leave_out(uint32_t stream_id, uint64_t calls);
void stall(uint32_t stream_id, const ThreadStall& stall);
void end_stream(uint32_t stream_id);
void add_module(const std::string& path);
void unload_module(uint32_t module_id);
// Called on the drain thread right after the next span was taken, once.
void after_next_span(std::function<void()> act);
// Taken with no prepare_pages() between them; of the drain thread, read when it is over.
inline uint32_t spans_since_preparation = 0;
inline uint32_t most_spans = 0;

struct Bytes32 {
  uint8_t bytes[32];
};
Bytes32 index_record(uint32_t stream_id, uint64_t number);
std::vector<uint8_t> detail_record(uint64_t number);

uint64_t acknowledged(uint32_t stream_id, Lane lane);
bool was_released(uint32_t stream_id);
uint32_t streams_held();
bool waiting_is_allowed();
void fill_buffer(bool is_filled);          // beyond any percentage
void begin_at(uint64_t ns);                // the current recording
void lose_without_stream(uint64_t count);  // 3 after reset()
void reach_size();                         // as a hook does: the recording has its size
uint32_t detail_filter_functions();        // of the last set_detail; 0 without a filter
uint32_t detail_filter_threads();
std::vector<uint64_t> function_filter();  // as it was committed last
uint32_t function_filters();              // how often one was
uint32_t thread_looks();                  // how often someone looked which threads live
uint32_t clock_fits();                    // how often the clock was fitted again

}  // namespace collect::agent::fake
