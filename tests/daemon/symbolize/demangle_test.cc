#include "daemon/symbolize/demangle.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <chrono>

#include "daemon/symbolize/limits.h"
#include "tests/daemon/symbolize/poison.h"

namespace collect::symbolize::test {
namespace {

TEST(Demangle, LeavesWhatIsNotCxx) {
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()");
  EXPECT_EQ(demangled("_Zgarbage"), "_Zgarbage");
  EXPECT_EQ(demangled(""), "");
}

TEST(Demangle, CutsLongNames) {
  const std::string linkage = "_Z" + std::string(20'000, 'P');
  const std::string name = demangled(linkage);
  EXPECT_EQ(name.size(), kMaxSymbolNameBytes);
  EXPECT_EQ(name, linkage.substr(0, kMaxSymbolNameBytes - 3) + "...");
}

TEST(Demangle, ANameUpToTheLimitIsTakenAsItIs) {
  const std::string most(kMaxSymbolNameBytes, 'x');
  EXPECT_EQ(demangled(most), most);
  EXPECT_EQ(demangled(most + "y"), most.substr(3) + "...");
}

// 278 bytes that stand for 436 MB: each pair holds the one before it twice.
TEST(Demangle, AnExponentialNameIsCut) {
  const std::string linkage = exponential_name(24);
  EXPECT_LT(linkage.size(), 300u);
  const std::string name = demangled(linkage);
  EXPECT_EQ(name.size(), kMaxSymbolNameBytes);
  EXPECT_TRUE(name.starts_with("f(std::pair<int, int>, ")) << name.substr(0, 80);
  EXPECT_TRUE(name.ends_with("..."));
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()") << "the demangler goes on after a jump out of it";
}

TEST(Demangle, TheClockTicksWhileItLives) {
  const auto timer = [] {
    itimerval now{};
    ::getitimer(ITIMER_VIRTUAL, &now);
    return now;
  };
  {
    const DemangleClock clock;
    EXPECT_EQ(timer().it_interval.tv_sec, 0);
    EXPECT_EQ(timer().it_interval.tv_usec, 20'000);
    EXPECT_NE(timer().it_value.tv_usec, 0) << "it runs";
  }
  EXPECT_EQ(timer().it_value.tv_usec, 0);
}

// A tick between two names has nothing to jump out of.
TEST(Demangle, TicksBetweenNamesDoNothing) {
  const DemangleClock clock;
  for (const std::string& name : {exponential_name(24), std::string("_ZN1a1bEv")}) {
    (void)demangled(name);
    for (int tick = 0; tick < 2 * kDemangleTicks; ++tick) ASSERT_EQ(::raise(SIGVTALRM), 0);
  }
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()");
}

// Ticks more often than the clock itself does.
class FastTicks {
 public:
  explicit FastTicks(long interval_ns) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGVTALRM;
    EXPECT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer_), 0);
    itimerspec every{{0, interval_ns}, {0, interval_ns}};
    EXPECT_EQ(::timer_settime(timer_, 0, &every, nullptr), 0);
  }
  ~FastTicks() { ::timer_delete(timer_); }

 private:
  timer_t timer_{};
};

// The time of a name is its own: those before it have used none of it.
TEST(Demangle, EveryNameHasItsTime) {
  const DemangleClock clock;
  const FastTicks ticks(2'000'000);
  std::string name = "f(int";
  for (int i = 1; i < 300; ++i) name += ", int";
  const std::string linkage = "_Z1f" + std::string(300, 'i');
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) ASSERT_EQ(demangled(linkage), name + ")");
}

TEST(Demangle, EveryDepthIsCutAndNeverHeldUp) {
  const DemangleClock clock;
  for (size_t depth = 1; depth < 200; ++depth) {
    EXPECT_LE(demangled(exponential_name(depth)).size(), kMaxSymbolNameBytes);
  }
}

TEST(Demangle, EveryPrefixAndEveryFlippedByteIsTaken) {
  const DemangleClock clock;
  const std::string whole = "_ZNSt6vectorIN2ns1TIiJdcEE1UESaIS3_EE9push_backEOKS3_";
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) (void)demangled(whole.substr(0, bytes));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_LE(demangled(flipped).size(), kMaxSymbolNameBytes);
    }
  }
}

}  // namespace
}  // namespace collect::symbolize::test
