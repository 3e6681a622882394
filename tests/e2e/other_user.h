// What another user of this machine would do, done by a forked child that has become that user.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace collect::e2e {

inline constexpr uid_t kOtherUid = 65'534;

// Runs `work` as that user, with its groups but no others, and returns what it returned. The test
// is skipped elsewhere when it can't become another user.
inline std::string as_other_user(const std::function<std::string()>& work) {
  int answer[2];
  EXPECT_EQ(pipe(answer), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(kOtherUid, kOtherUid, kOtherUid) != 0 ||
        setresuid(kOtherUid, kOtherUid, kOtherUid) != 0) {
      _exit(1);
    }
    const std::string text = work();
    size_t written = 0;
    while (written < text.size()) {
      const ssize_t count = write(answer[1], text.data() + written, text.size() - written);
      if (count <= 0) _exit(1);
      written += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(answer[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = read(answer[0], bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
  }
  close(answer[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "the other user's process: " << status;
  return text;
}

// The same, and the child stays, with whatever `work` has opened when it calls `hold`, as long as
// the object.
class HeldByOtherUser {
 public:
  explicit HeldByOtherUser(const std::function<void(const std::function<void()>& hold)>& work) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      if (setresgid(kOtherUid, kOtherUid, kOtherUid) != 0 ||
          setresuid(kOtherUid, kOtherUid, kOtherUid) != 0) {
        _exit(1);
      }
      work([&ready] {
        if (write(ready[1], "", 1) != 1) _exit(1);
        while (true) pause();
      });
      _exit(1);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the other user's process ended";
    close(ready[0]);
  }
  ~HeldByOtherUser() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  HeldByOtherUser(const HeldByOtherUser&) = delete;
  HeldByOtherUser& operator=(const HeldByOtherUser&) = delete;

 private:
  pid_t child_ = -1;
};

}  // namespace collect::e2e
