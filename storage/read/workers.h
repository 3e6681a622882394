// Work that can be split, on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

#include "formats/core/threads.h"

namespace collect::read {

// How many workers share `count` pieces.
inline size_t workers_for(size_t count) {
  const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
  return std::clamp<size_t>(count, 1, cores);
}

// work(worker, piece) once for each piece below `count`, in order of their beginnings; `worker` is
// below workers_for(count), and one worker does one piece at a time. The calling thread works too,
// and is the only one that calls progress(done, count). Throws what `work` throws.
template <class Work>
void share_work(size_t count, const std::function<void(size_t, size_t)>& progress, Work work) {
  std::atomic<size_t> next{0};
  const auto do_next = [&](size_t worker) {
    const size_t piece = next.fetch_add(1, std::memory_order_relaxed);
    if (piece < count) work(worker, piece);
    return piece;
  };
  Workers others("work", workers_for(count) - 1, [&do_next, count](size_t worker) {
    while (do_next(worker) < count) {
    }
  });
  progress(0, count);
  for (size_t piece = do_next(0); piece < count; piece = do_next(0)) progress(piece, count);
  others.join();
  progress(count, count);
}

}  // namespace collect::read
