// What another user of this machine would do, done by a forked child that has become that user. It
// takes root.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "tests/child/forked_child.h"

namespace collect::fakes {

inline constexpr uid_t kOtherUid = 65'534;

// A child process that is this user, with its group and no others, until `work` returns. It ends
// with the object.
class OtherUser : public child::ForkedChild {
 public:
  static constexpr int kNotThatUser = 125;  // the exit code of one that may not become it
  // What `work` returns is the exit code.
  explicit OtherUser(const std::function<int()>& work, uid_t uid = kOtherUid)
      : ForkedChild([&] { return becomes(uid) ? work() : kNotThatUser; }) {}

  // Its exit code; -1 when it did not come to one.
  int wait() { return ForkedChild::wait(child::seconds(120)).exit_code; }

 private:
  static bool becomes(uid_t uid) {
    return uid == ::getuid() || (::setgroups(0, nullptr) == 0 && ::setresgid(uid, uid, uid) == 0 &&
                                 ::setresuid(uid, uid, uid) == 0);
  }
};

// What `work` returned, which that user ran.
inline std::string as_other_user(const std::function<std::string()>& work) {
  int answer[2];
  EXPECT_EQ(::pipe(answer), 0);
  OtherUser user([&] {
    const std::string text = work();
    for (size_t written = 0; written < text.size();) {
      const ssize_t count = ::write(answer[1], text.data() + written, text.size() - written);
      if (count <= 0) return 1;
      written += static_cast<size_t>(count);
    }
    return 0;
  });
  ::close(answer[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(answer[0], bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
  }
  ::close(answer[0]);
  EXPECT_EQ(user.wait(), 0) << "the other user's process";
  return text;
}

// That user, with all that `work` has opened when it calls `hold`, as long as the object exists.
class HeldByOtherUser {
 public:
  using Hold = std::function<void()>;

  explicit HeldByOtherUser(const std::function<void(const Hold&)>& work, uid_t uid = kOtherUid)
      : ready_(make_pipe()), user_([&] { return held(work); }, uid) {
    ::close(ready_.second);
    char byte = 0;
    EXPECT_EQ(::read(ready_.first, &byte, 1), 1) << "the other user's process ended";
    ::close(ready_.first);
  }

 private:
  static std::pair<int, int> make_pipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    return {ends[0], ends[1]};
  }
  int held(const std::function<void(const Hold&)>& work) const {
    work([this] {
      if (::write(ready_.second, "", 1) != 1) ::_exit(1);
      while (true) ::pause();
    });
    return 1;
  }

  const std::pair<int, int> ready_;
  OtherUser user_;
};

// The same within this process, for objects that stay in it: a thread of its own makes and connects
// sockets as that user. The system call itself, because the library's function changes every
// thread.
inline void on_thread_of_other_user(const std::function<void()>& work) {
  std::thread([&work] {
    ASSERT_EQ(::syscall(SYS_setresuid, -1, kOtherUid, -1), 0);
    work();
  }).join();
}

}  // namespace collect::fakes
