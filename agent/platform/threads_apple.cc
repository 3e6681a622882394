// macOS and iOS. Thread numbers are the system's, of 64 bits, of which the low half is kept: they
// count up from the system's start.
#include <mach/mach.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/platform/threads.h"

namespace collect::agent {
namespace {

// The threads of this task, as ports that are given back.
class TaskThreads {
 public:
  TaskThreads() {
    if (task_threads(mach_task_self(), &ports_, &count_) != KERN_SUCCESS) count_ = 0;
  }
  ~TaskThreads() {
    if (ports_ == nullptr) return;
    for (mach_msg_type_number_t i = 0; i < count_; ++i) {
      (void)mach_port_deallocate(mach_task_self(), ports_[i]);
    }
    (void)vm_deallocate(mach_task_self(), reinterpret_cast<vm_address_t>(ports_),
                        count_ * sizeof(thread_act_t));
  }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  uint32_t count() const { return count_; }
  // 0 when it has ended meanwhile.
  uint32_t id(uint32_t i) const {
    thread_identifier_info_data_t info;
    mach_msg_type_number_t words = THREAD_IDENTIFIER_INFO_COUNT;
    if (thread_info(ports_[i], THREAD_IDENTIFIER_INFO, reinterpret_cast<thread_info_t>(&info),
                    &words) != KERN_SUCCESS) {
      return 0;
    }
    return static_cast<uint32_t>(info.thread_id);
  }
  // MACH_PORT_NULL when it has ended.
  thread_act_t find(uint32_t thread_id) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (id(i) == thread_id) return ports_[i];
    }
    return MACH_PORT_NULL;
  }

 private:
  thread_act_array_t ports_ = nullptr;
  mach_msg_type_number_t count_ = 0;
};

uint64_t run_ns(const time_value_t& time) {
  return static_cast<uint64_t>(time.seconds) * 1000000000U +
         static_cast<uint64_t>(time.microseconds) * 1000U;
}

size_t list_bytes(uint32_t count) {
  return size_t{count} * sizeof(uint32_t);
}

}  // namespace

uint32_t os_thread_id() {
  uint64_t id = 0;
  (void)pthread_threadid_np(pthread_self(), &id);
  return static_cast<uint32_t>(id);
}
void find_thread_ids() {}

bool read_thread_name(pid_t, uint32_t thread_id, char* out, size_t out_bytes) {
  const TaskThreads threads;
  thread_extended_info_data_t info;
  mach_msg_type_number_t words = THREAD_EXTENDED_INFO_COUNT;
  if (thread_info(threads.find(thread_id), THREAD_EXTENDED_INFO,
                  reinterpret_cast<thread_info_t>(&info), &words) != KERN_SUCCESS) {
    return false;
  }
  const size_t length = strnlen(info.pth_name, sizeof info.pth_name);
  const size_t bytes = length < out_bytes ? length : out_bytes - 1;
  memcpy(out, info.pth_name, bytes);
  out[bytes] = '\0';
  return true;
}

// The system does not say how long a thread waited for a processor: all that is off one is blocked.
bool read_thread_times(pid_t, uint32_t thread_id, ThreadTimes& times) {
  const TaskThreads threads;
  thread_basic_info_data_t info;
  mach_msg_type_number_t words = THREAD_BASIC_INFO_COUNT;
  if (thread_info(threads.find(thread_id), THREAD_BASIC_INFO,
                  reinterpret_cast<thread_info_t>(&info), &words) != KERN_SUCCESS) {
    return false;
  }
  times = {run_ns(info.user_time) + run_ns(info.system_time), 0, 0};
  return true;
}

// One question to the system for all of them. Memory of the list is the kernel's, not malloc's.
LivingThreads::LivingThreads(pid_t process) : process_(process) {
  const TaskThreads threads;
  vm_address_t memory = 0;
  if (threads.count() == 0 || vm_allocate(mach_task_self(), &memory, list_bytes(threads.count()),
                                          VM_FLAGS_ANYWHERE) != KERN_SUCCESS) {
    return;
  }
  list_ = reinterpret_cast<uint32_t*>(memory);
  count_ = threads.count();
  for (uint32_t i = 0; i < count_; ++i) list_[i] = threads.id(i);
}

LivingThreads::~LivingThreads() {
  if (list_ == nullptr) return;
  (void)vm_deallocate(mach_task_self(), reinterpret_cast<vm_address_t>(list_), list_bytes(count_));
}

bool LivingThreads::contains(uint32_t thread_id) const {
  if (list_ == nullptr) return true;  // nothing is known
  for (uint32_t i = 0; i < count_; ++i) {
    if (list_[i] == thread_id) return true;
  }
  return false;
}

// The system counts the main thread out when it ends by pthread_exit, and then only ours is left.
bool only_this_thread_left() {
  const TaskThreads threads;
  return threads.count() == 1;
}

uint64_t voluntary_switches() {
  return 0;
}

// The system has no such call for programs: time does it. Stores leave a core's buffer within far
// less.
void register_barrier(bool) {}

void barrier_all_threads() {
  const timespec pause{0, 10000000};
  nanosleep(&pause, nullptr);
}

}  // namespace collect::agent
