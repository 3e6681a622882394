// A kernel that lacks a system call, or a container that forbids it: the call answers with an
// error.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <functional>

#include "tests/fakes/machine/other_user.h"

namespace collect::fakes {

// What `work` returned, run by a child for which that system call answers with `error`.
inline int without_system_call(long number, const std::function<int()>& work, int error = ENOSYS) {
  constexpr int kNoFilter = 126;
  OtherUser child(
      [&] {
        sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog filter{std::size(code), code};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
          return kNoFilter;
        }
        return work();
      },
      ::getuid());
  return child.wait();
}

}  // namespace collect::fakes
