// Context switches of the threads of one process, and samples of where they are, in the order of
// time, as the kernel reports them to an ordinary user (perf_event_open(2)): for each processor one
// event that every later thread inherits, with a ring; for each thread that is there already one
// per processor, into the same rings. Samples are events of their own, into these rings.
//
// Linux only. One thread: the drain's. Static storage.
#pragma once

#include <cstdint>

namespace collect::agent {

inline constexpr uint32_t kMaxSwitchProcessors = 256;
inline constexpr uint32_t kMaxSwitchThreads = 1024;      // that are there at the start
inline constexpr uint32_t kMaxSwitchDescriptors = 4096;  // for them, one per processor
inline constexpr uint32_t kSwitchRingPages = 64;         // of each processor; fewer where memory
                                                         // that is locked is limited
// A record may be this much older than the newest of another processor when it is written.
inline constexpr uint64_t kSwitchSettleNs = 1'000'000;

struct SwitchRecord {
  // It comes to a processor, or leaves it, or runs there.
  enum class What : uint8_t { kIn, kBlocked, kPreempted, kSample };
  uint64_t ns = 0;  // CLOCK_BOOTTIME
  uint32_t thread_id = 0;
  What what = What::kIn;
  uint64_t address = 0;  // of kSample: of the instruction
};

struct SwitchesWanted {
  bool switches = true;
  uint32_t sample_hz = 0;  // of the time that a thread is on a processor, outside of the kernel
};

class SwitchRings {
 public:
  // Watches the threads of the process and all that they start. Null, or a static sentence that
  // says why not; nothing is open then.
  const char* open(int32_t process, const SwitchesWanted& wanted);
  void close();
  // Why there are no samples although they were wanted, and all else is there; or null.
  const char* no_samples() const { return no_samples_; }
  bool is_open() const { return processors_ != 0; }

  // What the kernel has written by now: next() gives records of then. What is `kSwitchSettleNs` old
  // is among them.
  void look();
  // The next record whose time is not after `until_ns`, in the order of time; false when there is
  // none.
  bool next(uint64_t until_ns, SwitchRecord& record);
  // Records that the kernel found no room for.
  uint64_t lost() const { return lost_; }

 private:
  struct Ring {
    void* mapped = nullptr;
    uint64_t bytes = 0;  // of records; a power of two
    uint64_t read = 0;   // position in the stream of bytes
    uint64_t filled = 0;
    bool has_next = false;
    SwitchRecord next;
  };

  const char* open_processor(int32_t thread, uint32_t processor);
  const char* open_others();
  bool is_watched(int32_t thread) const;
  bool watch_thread(int32_t thread);
  bool sample(int32_t thread, uint32_t processor, int ring_fd);
  bool map_ring(Ring& ring, int fd);
  void advance(Ring& ring);
  void copy_out(const Ring& ring, uint64_t at, void* to, uint64_t bytes) const;
  bool keep(int fd);

  uint32_t processors_ = 0;
  SwitchesWanted wanted_;
  const char* no_samples_ = nullptr;
  uint32_t pages_ = kSwitchRingPages;
  uint32_t descriptor_count_ = 0;
  uint64_t lost_ = 0;
  int32_t process_ = 0;
  uint32_t watched_count_ = 0;
  uint32_t numbers_[kMaxSwitchProcessors];  // of the processors
  int ring_fds_[kMaxSwitchProcessors];
  Ring rings_[kMaxSwitchProcessors];
  int32_t watched_[kMaxSwitchThreads];
  int descriptors_[kMaxSwitchDescriptors];
};

}  // namespace collect::agent
