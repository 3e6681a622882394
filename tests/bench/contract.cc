#include "tests/bench/contract.h"

#include <cstdio>

namespace collect::bench {

void report(const std::string& what, double measured, Side side, double promised,
            const std::string& unit, int decimals) {
  const bool met = side == Side::kAtMost ? measured <= promised : measured >= promised;
  std::printf("%-58s %9.*f %-8s contract %s %.*f  %s\n", what.c_str(), decimals, measured,
              unit.c_str(), side == Side::kAtMost ? "<=" : ">=", decimals, promised,
              met ? "met" : "MISSED");
  std::fflush(stdout);
}

void mention(const std::string& what, double measured, const std::string& unit, int decimals) {
  std::printf("%-58s %9.*f %s\n", what.c_str(), decimals, measured, unit.c_str());
  std::fflush(stdout);
}

}  // namespace collect::bench
