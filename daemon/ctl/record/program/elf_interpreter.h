// Which dynamic linker an ELF file names.
#pragma once

#include <optional>
#include <string>

namespace collect::ctl {

// The interpreter of a program of 64 bits; empty: it is linked statically. Nothing: it is no such
// program, or can't be read.
std::optional<std::string> elf_interpreter(int file);

}  // namespace collect::ctl
