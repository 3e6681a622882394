#include "agent/ring/open_calls.h"

#include <sys/mman.h>

#include "agent/platform/system.h"
#include "agent/ring/stream.h"

namespace collect::agent {
namespace {

// The first calls of a chunk's room are no calls.
struct ChunkHead {
  uint64_t number;      // of the chunk in its slot, from 1
  OpenCall* before;     // the end of the chunk before it; null: it is the first
  uint64_t function_0;  // below the first call
  OpenCall* after;      // the first call of the chunk after it
};
constexpr uint64_t kHeadCalls = sizeof(ChunkHead) / sizeof(OpenCall);
static_assert(kHeadCalls == 2);

// Private to the process, also where streams are shared with a drain process.
OpenCall* first_chunks[kMaxStreams];

// A full chunk without a call, somewhere in here.
alignas(OpenCall) unsigned char nothing[2 * kOpenCallChunkBytes];

ChunkHead& head_of(const OpenCall* call) {
  return *reinterpret_cast<ChunkHead*>(reinterpret_cast<uint64_t>(call) &
                                       ~(kOpenCallChunkBytes - 1));
}

// All chunks there are, the first one aligned. Slots keep theirs, so none is given back. A forked
// child has copies of those that were used.
unsigned char* chunks = nullptr;
uint32_t chunk_count = 0;
std::atomic<uint32_t> chunks_taken{0};

// Its first call, or null.
OpenCall* take_chunk(OpenCall* before, uint64_t number) {
  uint32_t taken = chunks_taken.load(std::memory_order_relaxed);
  do {
    if (taken == chunk_count) return nullptr;
  } while (!chunks_taken.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));
  auto* chunk = reinterpret_cast<OpenCall*>(chunks + uint64_t{taken} * kOpenCallChunkBytes);
  head_of(chunk) = {number, before, 0, nullptr};
  return chunk + kHeadCalls;
}

// The first call of the chunk after the one that is full up to `top`, or null.
OpenCall* next_chunk(Stream& stream, OpenCall* top) {
  OpenCall** after = &first_chunks[stream_slot(stream)];
  OpenCall* before = nullptr;
  uint64_t number = 1;
  if (top != no_open_calls()) {
    ChunkHead& head = head_of(top - 1);
    after = &head.after;
    before = top;
    number = head.number + 1;
  }
  if (*after == nullptr && number <= kMaxOpenCallChunks) *after = take_chunk(before, number);
  return *after;
}

}  // namespace

void open_calls_init() {
  constexpr uint64_t kLeastBytes = 1024 * 1024;
  for (uint64_t bytes = kOpenCallBytes; chunks == nullptr && bytes >= kLeastBytes; bytes /= 2) {
    void* const mapped = sys::mmap(nullptr, bytes + kOpenCallChunkBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) continue;
    const uint64_t first = reinterpret_cast<uint64_t>(mapped) + kOpenCallChunkBytes - 1;
    chunks = reinterpret_cast<unsigned char*>(first & ~(kOpenCallChunkBytes - 1));
    chunk_count = static_cast<uint32_t>(bytes / kOpenCallChunkBytes);
  }
}

OpenCall* no_open_calls() {
  const uint64_t first = reinterpret_cast<uint64_t>(nothing) + kOpenCallChunkBytes;
  return reinterpret_cast<OpenCall*>(first & ~(kOpenCallChunkBytes - 1));
}

bool push_open_call(Stream& stream, const OpenCall& call) {
  OpenCall* top = stream.open_calls;
  if (open_calls_full(top)) {
    top = next_chunk(stream, top);
    if (top == nullptr) return false;
  }
  *top = call;
  stream.open_calls = top + 1;
  return true;
}

void pop_open_call(Stream& stream) {
  (void)newest_open_call(stream);
  --stream.open_calls;
}

// The short path stays at the beginning of a chunk that it has emptied.
OpenCall& newest_open_call(Stream& stream) {
  OpenCall* newest = stream.open_calls - 1;
  if (newest->function == 0 && stream.open_calls != no_open_calls()) {
    OpenCall* before = head_of(newest).before;
    if (before != nullptr) stream.open_calls = before;
  }
  return stream.open_calls[-1];
}

OpenCall& older_open_call(OpenCall& call) {
  OpenCall* older = &call - 1;
  if (older->function != 0) return *older;
  OpenCall* before = head_of(&call).before;
  return before == nullptr ? *older : before[-1];
}

}  // namespace collect::agent
