// `collectctl pack PATH…` takes a session's thread files away, once its containers have proven to
// hold them; every command reads it as before. `unpack` makes them again, byte for byte.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace collect::ctl {

struct PackOptions {
  std::vector<std::string> paths;
  bool unpack = false;
  bool json = false;      // one document
  bool progress = false;  // `err` is a terminal
};

// 0: all of them are, or were already. 2: the one that is named was not, nor any behind it.
int pack(const PackOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
