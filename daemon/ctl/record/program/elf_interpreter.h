// Which dynamic linker an ELF file names.
#pragma once

#include <optional>
#include <string>

namespace collect::ctl {

// Of a program of 64 bits; empty: it is linked statically. Nothing: it is none, or can't be read.
std::optional<std::string> elf_interpreter(int file);

}  // namespace collect::ctl
