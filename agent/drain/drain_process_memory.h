// What a fresh drain process lets go of, so that the traced program's memory and files are its own
// again. DrainProcess only, before it drains. Nothing allocates.
#pragma once

#include "agent/own_object.h"

namespace collect::agent {

// Unmaps the program's private memory (large anonymous ranges) and all that it shares with others.
// What the drain process needs stays, and small ranges do, for the C library and the dynamic linker
// keep their own state in some. Nothing is unmapped where calls of the C library may still have to
// be looked up (a program that links the agent in without -z now), or under a sanitizer.
void drop_program_memory(const OwnObject& own);

// The command line that the system shows, which was copied from the program.
void rename_command_line();

// Closes every descriptor but these two; 0 and 1 become /dev/null, and 2 unless `keep_errors`.
void keep_descriptors(int first, int second, bool keep_errors);

// 2 becomes /dev/null too.
void drop_errors();

}  // namespace collect::agent
