// What the system says about this process and the device that it runs on. One file for each system.
// On the thread that starts the agent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

// The beginning of a file; 0 when it can't be read.
size_t read_file(const char* path, char* out, size_t size);

// The inode of this process's PID namespace; 0 where there is none, or it can't be seen.
uint64_t pid_namespace();

bool fill_random(uint8_t* out, size_t bytes);

// The fields of Hello that name system, device and process; those that can't be had stay empty.
void fill_system(collect_wire_Hello& hello);

}  // namespace collect::agent
