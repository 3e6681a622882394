// The load of the ingest benchmark: prepared pages that are sent over loopback, to the collector
// and to a bare sink.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "tests/e2e/raw_agent.h"

namespace collect::bench {

struct PreparedPages {
  e2e::Octets bytes;  // of frames, headers included
  uint64_t record_count = 0;
  uint64_t stored_bytes = 0;  // of records
  uint64_t end_ns = 0;        // of the last one
};

// About `bytes` of records in whole 64 KiB pages of stream 1: the calls and returns of a program
// that does not exist, 400 functions of different lengths. kTuples is what agents of this machine
// send.
PreparedPages prepare_pages(uint64_t bytes, Codec codec = Codec::kRaw);

// Greets the collector as process `pid`, sends the pages, ends the recording, and returns when the
// session is sealed; false when the collector refused any of it. Serves the control channel
// meanwhile, as an agent does.
bool feed_collector(uint16_t port, uint32_t pid, const PreparedPages& pages);

void feed_sink(uint16_t port, const PreparedPages& pages);

// The bare minimum that any collector does: one thread reads 256 KiB at a time from one connection
// and writes them to a file.
class BareSink {
 public:
  explicit BareSink(const std::string& path);
  ~BareSink();
  BareSink(const BareSink&) = delete;
  BareSink& operator=(const BareSink&) = delete;

  uint16_t port() const { return port_; }
  double finish();  // waits for the end of the connection; CPU seconds of its thread

 private:
  void receive(const std::string& path);

  int listener_ = -1;
  uint16_t port_ = 0;
  double cpu_seconds_ = 0;
  std::thread thread_;
};

}  // namespace collect::bench
