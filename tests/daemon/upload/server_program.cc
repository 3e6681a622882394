#include "tests/daemon/upload/server_program.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace collect::upload::test {

ServerProgram::ServerProgram(std::vector<std::string> arguments) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> words = {"python3", "-B"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (::posix_spawnp(&pid_, "python3", &actions, nullptr, argv.data(), environ) != 0) std::abort();
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  socket_ = ends[0];
  for (char c; ::read(socket_, &c, 1) == 1 && c != '\n';) line_ += c;
}

ServerProgram::~ServerProgram() {
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace collect::upload::test
