/* Of Apple's SDK, what the agent uses. For a compile check. */
#pragma once
#include <stdint.h>

typedef int kern_return_t;
typedef int boolean_t;
typedef unsigned int natural_t;
typedef int integer_t;
typedef int vm_prot_t;
typedef natural_t mach_port_t;
typedef natural_t mach_msg_type_number_t;
typedef mach_port_t task_t;
typedef mach_port_t thread_act_t;
typedef thread_act_t* thread_act_array_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;
typedef natural_t thread_flavor_t;
typedef integer_t* thread_info_t;

struct thread_identifier_info {
  uint64_t thread_id;
  uint64_t thread_handle;
  uint64_t dispatch_qaddr;
};
typedef struct thread_identifier_info thread_identifier_info_data_t;

struct thread_extended_info {
  uint64_t pth_user_time;
  uint64_t pth_system_time;
  int32_t pth_cpu_usage;
  int32_t pth_policy;
  int32_t pth_run_state;
  int32_t pth_flags;
  int32_t pth_sleep_time;
  int32_t pth_curpri;
  int32_t pth_priority;
  int32_t pth_maxpriority;
  char pth_name[64];
};
typedef struct thread_extended_info thread_extended_info_data_t;

typedef struct time_value {
  integer_t seconds;
  integer_t microseconds;
} time_value_t;

struct thread_basic_info {
  time_value_t user_time;
  time_value_t system_time;
  integer_t cpu_usage;
  integer_t policy;
  integer_t run_state;
  integer_t flags;
  integer_t suspend_count;
  integer_t sleep_time;
};
typedef struct thread_basic_info thread_basic_info_data_t;

#define KERN_SUCCESS 0
#define MACH_PORT_NULL 0
#define VM_FLAGS_ANYWHERE 1
#define VM_PROT_EXECUTE 4
#define THREAD_BASIC_INFO 3
#define THREAD_BASIC_INFO_COUNT \
  ((mach_msg_type_number_t)(sizeof(thread_basic_info_data_t) / sizeof(natural_t)))
#define THREAD_IDENTIFIER_INFO 4
#define THREAD_IDENTIFIER_INFO_COUNT \
  ((mach_msg_type_number_t)(sizeof(thread_identifier_info_data_t) / sizeof(natural_t)))
#define THREAD_EXTENDED_INFO 5
#define THREAD_EXTENDED_INFO_COUNT \
  ((mach_msg_type_number_t)(sizeof(thread_extended_info_data_t) / sizeof(natural_t)))

#ifdef __cplusplus
extern "C" {
#endif
mach_port_t mach_task_self(void);
kern_return_t task_threads(task_t task, thread_act_array_t* threads, mach_msg_type_number_t* count);
kern_return_t thread_info(thread_act_t thread, thread_flavor_t flavor, thread_info_t info,
                          mach_msg_type_number_t* count);
kern_return_t mach_port_deallocate(task_t task, mach_port_t port);
kern_return_t vm_allocate(task_t task, vm_address_t* address, vm_size_t bytes, int flags);
kern_return_t vm_deallocate(task_t task, vm_address_t address, vm_size_t bytes);
#ifdef __cplusplus
}
#endif
