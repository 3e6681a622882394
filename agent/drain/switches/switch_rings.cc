#include "agent/drain/switches/switch_rings.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include <cerrno>

#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

constexpr uint32_t kMaxRounds = 64;  // through the list of threads, until none is new

struct Identity {  // what PERF_SAMPLE_TID | PERF_SAMPLE_TIME puts behind each record
  uint32_t process;
  uint32_t thread;
  uint64_t ns;
};
struct LostRecord {
  perf_event_header header;
  uint64_t event;
  uint64_t lost;
};

struct SampleRecord {  // PERF_SAMPLE_IP too
  perf_event_header header;
  uint64_t address;
  Identity who;
};

// Switches, or nothing; or samples.
perf_event_attr attributes(bool switches, uint32_t sample_hz) {
  perf_event_attr wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_DUMMY;
  wanted.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  wanted.sample_id_all = 1;
  wanted.context_switch = switches;
  wanted.exclude_kernel = 1;
  wanted.inherit = 1;
  wanted.inherit_thread = 1;
  wanted.use_clockid = 1;
  wanted.clockid = CLOCK_BOOTTIME;
  if (sample_hz == 0) return wanted;
  wanted.config = PERF_COUNT_SW_CPU_CLOCK;
  wanted.sample_type |= PERF_SAMPLE_IP;
  wanted.freq = 1;
  wanted.sample_freq = sample_hz;
  return wanted;
}

int open_event(int32_t thread, uint32_t processor, bool switches, uint32_t sample_hz = 0) {
  perf_event_attr wanted = attributes(switches, sample_hz);
  const auto open = [&] {
    return static_cast<int>(
        sys::call(SYS_perf_event_open, &wanted, thread, processor, -1, PERF_FLAG_FD_CLOEXEC));
  };
  int fd = open();
  if (fd < 0 && errno == EINVAL) {
    // Before Linux 5.13 forked children are watched too, and left out when they are read.
    wanted.inherit_thread = 0;
    fd = open();
  }
  return fd;
}

const char* why_not(int error) {
  switch (error) {
    case ENOSYS:
    case ENOENT:
      return "this kernel has no events of context switches";
    case EPERM:
    case EACCES:
      return "the system does not allow it (kernel.perf_event_paranoid, or a container's filter of "
             "system calls)";
    case EMFILE:
    case ENFILE:
      return "too few descriptors for the threads and processors";
    default:
      return "the kernel gives no events of context switches";
  }
}

// Some filters of system calls end who makes one: a child asks before.
bool may_ask() {
  if (!was_filtered()) return true;
  const long child = sys::call(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
  if (child == 0) {
    (void)open_event(0, 0, true);
    sys::end_process(0);
  }
  int status = 0;
  long ended = -1;
  do {
    ended = child < 0 ? child : sys::call(SYS_wait4, child, &status, __WCLONE, nullptr);
  } while (ended < 0 && child > 0 && errno == EINTR);
  return ended == child && child > 0 && status == 0;
}

// "0-3,8": calls `take` with each number, until it returns false.
template <class Take>
void for_each_number(const char* list, Take take) {
  const char* at = list;
  const auto number = [&at] {
    uint32_t value = 0;
    for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint32_t>(*at - '0');
    return value;
  };
  while (*at >= '0' && *at <= '9') {
    const uint32_t first = number();
    uint32_t last = first;
    if (*at == '-') {
      ++at;
      last = number();
    }
    for (uint32_t value = first; value <= last; ++value) {
      if (!take(value)) return;
    }
    if (*at == ',') ++at;
  }
}

struct Entry {  // of getdents64
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  unsigned char type;
  char name[1];
};

int32_t number_of(const char* name) {
  int32_t value = 0;
  for (; *name >= '0' && *name <= '9'; ++name) value = value * 10 + (*name - '0');
  return *name == '\0' ? value : 0;
}

uint64_t page_bytes() {
  return getauxval(AT_PAGESZ);
}

}  // namespace

bool SwitchRings::keep(int fd) {
  if (descriptor_count_ == kMaxSwitchDescriptors) {
    (void)sys::close(fd);
    errno = EMFILE;
    return false;
  }
  descriptors_[descriptor_count_++] = fd;
  return true;
}

bool SwitchRings::map_ring(Ring& ring, int fd) {
  for (; pages_ != 0; pages_ /= 2) {
    void* const mapped =
        sys::mmap(nullptr, (1 + pages_) * page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) {
      ring = {mapped, pages_ * page_bytes(), 0, 0, false, {}};
      return true;
    }
    if (errno != EPERM && errno != ENOMEM) return false;
  }
  return false;
}

// Of a thread on a processor, into the ring of that. False: it is for no other, either.
bool SwitchRings::sample(int32_t thread, uint32_t processor, int ring_fd) {
  if (wanted_.sample_hz == 0) return true;
  const int fd = open_event(thread, processor, false, wanted_.sample_hz);
  if (fd < 0 && errno == ESRCH) return true;  // it has ended
  if (fd >= 0 && keep(fd) && sys::call(SYS_ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) == 0) {
    return true;
  }
  no_samples_ = why_not(errno);
  return false;
}

const char* SwitchRings::open_processor(int32_t thread, uint32_t processor) {
  const int fd = open_event(thread, processor, wanted_.switches);
  if (fd < 0) return why_not(errno);
  if (!keep(fd)) return why_not(errno);
  if (!map_ring(rings_[processors_], fd)) {
    return "too little memory may be locked (RLIMIT_MEMLOCK, kernel.perf_event_mlock_kb)";
  }
  numbers_[processors_] = processor;
  ring_fds_[processors_++] = fd;
  if (!sample(thread, processor, fd)) wanted_.sample_hz = 0;
  return nullptr;
}

bool SwitchRings::watch_thread(int32_t thread) {
  if (watched_count_ == kMaxSwitchThreads) {
    errno = EMFILE;
    return false;
  }
  watched_[watched_count_++] = thread;
  for (uint32_t i = 0; i < processors_; ++i) {
    const int fd = open_event(thread, numbers_[i], wanted_.switches);
    if (fd < 0) return errno == ESRCH;  // it has ended
    if (!keep(fd) || sys::call(SYS_ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fds_[i]) != 0) {
      return false;
    }
    if (!sample(thread, numbers_[i], ring_fds_[i])) wanted_.sample_hz = 0;
  }
  return true;
}

bool SwitchRings::is_watched(int32_t thread) const {
  for (uint32_t i = 0; i < watched_count_; ++i) {
    if (watched_[i] == thread) return true;
  }
  return false;
}

// The threads that were there before the first event. One that such a thread starts meanwhile may
// be watched twice, and its switches come twice then.
const char* SwitchRings::open_others() {
  char path[64];
  Text text(path, sizeof path);
  text.add("/proc/").number(static_cast<uint64_t>(process_)).add("/task");
  bool is_complete = false;
  for (uint32_t round = 0; round < kMaxRounds && !is_complete; ++round) {
    const int folder = sys::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return "the threads that it has cannot be listed";
    const char* problem = nullptr;
    is_complete = true;
    alignas(Entry) char buffer[4096];
    long bytes = 0;
    while (problem == nullptr &&
           (bytes = sys::call(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
      for (long at = 0; problem == nullptr && at < bytes;) {
        const auto* const entry = reinterpret_cast<const Entry*>(buffer + at);
        at += entry->bytes;
        const int32_t thread = number_of(entry->name);
        if (thread == 0 || is_watched(thread)) continue;
        is_complete = false;
        if (!watch_thread(thread)) problem = why_not(errno);
      }
    }
    (void)sys::close(folder);
    if (problem != nullptr) return problem;
  }
  return nullptr;
}

const char* SwitchRings::open(int32_t process, const SwitchesWanted& wanted) {
  close();
  wanted_ = wanted;
  no_samples_ = nullptr;
  if (!may_ask()) return why_not(EPERM);
  process_ = process;
  pages_ = kSwitchRingPages;
  watched_[watched_count_++] = process;
  char list[1024] = {};
  const int file = sys::open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
  if (file < 0) return "the processors are not known (/sys is not there)";
  const ssize_t got = sys::read(file, list, sizeof list - 1);
  (void)sys::close(file);
  const char* problem = got > 0 ? nullptr : "the processors are not known";
  for_each_number(list, [&](uint32_t processor) {
    if (problem == nullptr && processors_ == kMaxSwitchProcessors) {
      problem = "there are more processors than rings";
    }
    if (problem == nullptr) problem = open_processor(process, processor);
    return problem == nullptr;
  });
  if (problem == nullptr) problem = open_others();
  if (problem != nullptr) close();
  return problem;
}

void SwitchRings::close() {
  for (uint32_t i = 0; i < processors_; ++i) {
    (void)sys::munmap(rings_[i].mapped, page_bytes() + rings_[i].bytes);
  }
  for (uint32_t i = 0; i < descriptor_count_; ++i) (void)sys::close(descriptors_[i]);
  processors_ = descriptor_count_ = watched_count_ = 0;
  lost_ = 0;
}

void SwitchRings::copy_out(const Ring& ring, uint64_t at, void* to, uint64_t bytes) const {
  const auto* const data = static_cast<const unsigned char*>(ring.mapped) + page_bytes();
  for (uint64_t i = 0; i < bytes; ++i) {
    static_cast<unsigned char*>(to)[i] = data[(at + i) & (ring.bytes - 1)];
  }
}

void SwitchRings::look() {
  for (uint32_t i = 0; i < processors_; ++i) {
    const auto& page = *static_cast<const perf_event_mmap_page*>(rings_[i].mapped);
    rings_[i].filled = __atomic_load_n(&page.data_head, __ATOMIC_ACQUIRE);
    if (!rings_[i].has_next) advance(rings_[i]);
  }
}

// To the ring's next switch, if it has one.
void SwitchRings::advance(Ring& ring) {
  if (ring.read == ring.filled) return;
  while (!ring.has_next && ring.read < ring.filled) {
    perf_event_header header;
    copy_out(ring, ring.read, &header, sizeof header);
    if (header.size < sizeof header || header.size > ring.filled - ring.read) {
      ring.read = ring.filled;  // nothing that this kernel writes
      break;
    }
    if (header.type == PERF_RECORD_LOST && header.size >= sizeof(LostRecord)) {
      LostRecord record;
      copy_out(ring, ring.read, &record, sizeof record);
      lost_ += record.lost;
    } else if (header.type == PERF_RECORD_SWITCH &&
               header.size >= sizeof header + sizeof(Identity)) {
      Identity who;
      copy_out(ring, ring.read + header.size - sizeof who, &who, sizeof who);
      using What = SwitchRecord::What;
      const What out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0 ? What::kPreempted
                                                                                : What::kBlocked;
      ring.next = {who.ns, who.thread,
                   (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0 ? out : What::kIn, 0};
      ring.has_next = who.process == static_cast<uint32_t>(process_);
    } else if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof(SampleRecord)) {
      SampleRecord record;
      copy_out(ring, ring.read, &record, sizeof record);
      const Identity& who = record.who;
      ring.next = {who.ns, who.thread, SwitchRecord::What::kSample, record.address};
      ring.has_next = who.process == static_cast<uint32_t>(process_);
    }
    ring.read += header.size;
  }
  // What was copied may be written over.
  auto& page = *static_cast<perf_event_mmap_page*>(ring.mapped);
  __atomic_store_n(&page.data_tail, ring.read, __ATOMIC_RELEASE);
}

bool SwitchRings::next(uint64_t until_ns, SwitchRecord& record) {
  Ring* first = nullptr;
  for (uint32_t i = 0; i < processors_; ++i) {
    Ring& ring = rings_[i];
    if (ring.has_next && (first == nullptr || ring.next.ns < first->next.ns)) first = &ring;
  }
  if (first == nullptr || first->next.ns > until_ns) return false;
  record = first->next;
  first->has_next = false;
  advance(*first);
  return true;
}

}  // namespace collect::agent
