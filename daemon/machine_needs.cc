#include "daemon/machine_needs.h"

#include <algorithm>
#include <thread>

#include "daemon/ingest/link/limits.h"

namespace collect::daemon {
namespace {

// Beside those that io and data have for each core, one each of seals, names, sealed, conversions,
// devices, watches, control plane, page and store, two of pages, three of metrics, five that
// do tasks, and those of gRPC.
constexpr unsigned kFixedThreads = 19;
constexpr unsigned kGrpcThreads = 4;
constexpr unsigned kGrpcThreadsPerCore = 2;
constexpr unsigned kMaxGrpcThreads = 16;  // further ones are for a load that few have

// About what it maps and allocates until it is ready and a program records; the sweep of
// tests/e2e/faults/machine_faults_test.py holds it.
constexpr size_t kMemoryBytes = size_t{96} << 20;

// What it has open before a program records.
constexpr uint64_t kLeastOpenFiles = 32;

}  // namespace

MachineNeeds machine_needs() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned threads =
      kFixedThreads + std::min(kGrpcThreads + kGrpcThreadsPerCore * cores, kMaxGrpcThreads) +
      std::min(cores, ingest::kMaxIoThreads) + std::min(cores, ingest::kMaxDataThreads);
  return {threads, kMemoryBytes, kLeastOpenFiles};
}

}  // namespace collect::daemon
