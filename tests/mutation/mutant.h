#pragma once

// What a planted mistake asks: is it the one that is switched on? Only sources that plant.py
// rewrote include this, never the product.
//
// MUTANT_ID names the one mistake that is on (from 1). MUTANT_REACH names a file of one byte for
// each mistake, where every one that was asked leaves a 1: a test that never reaches a mistake
// can't notice it. Any thread, any process, also within a signal handler: both are read once,
// without a lock, before main() wherever that is early enough; two threads that read them at the
// same time store the same values.
//
// A process that was given an empty environment (collect-symbolizer) takes both from that of its
// parent, and does so before it gives up what that needs.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace mutant {

struct State {
  int active = -1;  // MUTANT_ID; 0 when none is on, -1 before it was read
  int reach_size = 0;
  volatile char* reach = nullptr;
};
inline State state;

// The value of NAME in what /proc shows of an environment; "" without one.
inline std::string variable(const std::string& environment, const std::string& name) {
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, name.size() + 1, name + "=") == 0) {
      return environment.substr(at + name.size() + 1, end - at - name.size() - 1);
    }
    at = end + 1;
  }
  return {};
}

inline std::string environment_of_parent() {
  const std::string path = "/proc/" + std::to_string(::getppid()) + "/environ";
  std::string environment;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char block[4096];
  ssize_t got = 0;
  while (file >= 0 && (got = ::read(file, block, sizeof block)) > 0) {
    environment.append(block, static_cast<size_t>(got));
  }
  if (file >= 0) ::close(file);
  return environment;
}

inline void map_reach(const char* path) {
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status{};
  if (file >= 0 && ::fstat(file, &status) == 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED) {
      state.reach_size = static_cast<int>(size);
      state.reach = static_cast<volatile char*>(bytes);
    }
  }
  if (file >= 0) ::close(file);
}

inline void read_environment() {
  if (environ == nullptr || environ[0] == nullptr) {
    const std::string parent = environment_of_parent();
    const std::string path = variable(parent, "MUTANT_REACH");
    if (!path.empty()) map_reach(path.c_str());
    state.active = ::atoi(variable(parent, "MUTANT_ID").c_str());
    return;
  }
  if (const char* path = ::getenv("MUTANT_REACH")) map_reach(path);
  const char* id = ::getenv("MUTANT_ID");
  state.active = id == nullptr ? 0 : ::atoi(id);
}

__attribute__((constructor)) inline void read_before_main() {
  if (state.active < 0) read_environment();
}

inline bool on(int id) {
  if (state.active < 0) read_environment();
  if (state.reach != nullptr && id < state.reach_size) state.reach[id] = 1;
  return id == state.active;
}

}  // namespace mutant
