#include "daemon/symbolize/lookup/demangle.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <chrono>

#include "daemon/symbolize/limits.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/fakes/sanitized.h"

namespace collect::symbolize::test {
namespace {

TEST(Demangle, LeavesWhatIsNotCxx) {
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()");
  EXPECT_EQ(demangled("_Zgarbage"), "_Zgarbage");
  EXPECT_EQ(demangled(""), "");
}

// RFC 2603, "Rust Symbol Mangling (v0)": its examples and its tests; the older scheme as rustc
// wrote it.
TEST(Demangle, NamesOfRust) {
  EXPECT_EQ(demangled("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(demangled("_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE"),
            "std::mem::align_of::<std::mem::Discriminant>");
  EXPECT_EQ(demangled("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"),
            "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_\u10d2\u10d4\u10db"
            "\u10e0\u10d8\u10d4\u10da\u10d8_\u10e1\u10d0\u10d3\u10d8\u10da\u10d8");
  EXPECT_EQ(demangled("_ZN4core3fmt9Formatter9pad_inner17h0123456789abcdefE"),
            "core::fmt::Formatter::pad_inner");
  EXPECT_EQ(demangled("_ZN3foo17hello_world_names3barEv"), "foo::hello_world_names::bar()")
      << "of C++ all the same";
  EXPECT_EQ(demangled("_ZN12_GLOBAL__N_113single_threadE"), "(anonymous namespace)::single_thread");
  EXPECT_EQ(
      demangled("_RNvMs1_NtNtCs4RZURTQcbNt_4core3ptr6uniqueINtB5_6UniqueDG_INtNtNtB9_3ops8func"
                "tion2FnTRL0_lEEp6OutputuEL_E6as_refCs64Hs8MuYH5P_13mangled_names"),
      "<core::ptr::unique::Unique<dyn for<'a> core::ops::function::Fn<(&'a i32,), Output = "
      "()>>>::as_ref");
  EXPECT_EQ(demangled("_Rgarbage"), "_Rgarbage");
  EXPECT_EQ(demangled("_R"), "_R");
}

// f::<(u32, u32), …>: each of the 40 tuples is the one before it twice, by references back.
std::string exponential_rust_name() {
  constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto reference = [&](size_t position) {
    std::string digits;
    for (size_t number = position - 1;; number /= 62) {
      digits.insert(0, 1, kDigits[number % 62]);
      if (number < 62) return "B" + digits + "_";
    }
  };
  std::string name = "IC1f";  // positions count from here
  size_t last = name.size();
  name += "TmmE";
  for (int level = 0; level < 40; ++level) {
    const size_t next = name.size();
    name += "T" + reference(last) + reference(last) + "E";
    last = next;
  }
  return "_R" + name + "E";
}

TEST(Demangle, ExponentialNameOfRustIsCut) {
  const std::string linkage = exponential_rust_name();
  EXPECT_LT(linkage.size(), 500u);
  const std::string name = demangled(linkage);
  EXPECT_EQ(name.size(), kMaxSymbolNameBytes);
  EXPECT_TRUE(name.starts_with("f::<(u32, u32), ((u32, u32), (u32, u32)), ")) << name.substr(0, 80);
  EXPECT_TRUE(name.ends_with("..."));
  EXPECT_EQ(demangled("_RNvC6_123foo3bar"), "123foo::bar") << "it continues after a jump out of it";
}

TEST(Demangle, CutsLongNames) {
  const std::string linkage = "_Z" + std::string(20'000, 'P');
  const std::string name = demangled(linkage);
  EXPECT_EQ(name.size(), kMaxSymbolNameBytes);
  EXPECT_EQ(name, linkage.substr(0, kMaxSymbolNameBytes - 3) + "...");
}

TEST(Demangle, KeepsANameUpToTheLimit) {
  const std::string most(kMaxSymbolNameBytes, 'x');
  EXPECT_EQ(demangled(most), most);
  EXPECT_EQ(demangled(most + "y"), most.substr(3) + "...");
}

// 409 numbers are 2,045 bytes of text with their brackets: a name of three bytes just fits.
TEST(Demangle, CxxTextUpToTheLimitIsWhole) {
  const std::string arguments(409, 'i');
  const std::string whole = demangled("_Z3fff" + arguments);
  EXPECT_EQ(whole.size(), kMaxSymbolNameBytes);
  EXPECT_TRUE(whole.starts_with("fff(int, int, "));
  EXPECT_TRUE(whole.ends_with(", int)"));
  EXPECT_EQ(demangled("_Z4ffff" + arguments),
            "f" + whole.substr(0, kMaxSymbolNameBytes - 4) + "...");
}

// 278 bytes that stand for 436 MB: each pair holds the one before it twice.
TEST(Demangle, ExponentialNameIsCut) {
  const std::string linkage = exponential_name(24);
  EXPECT_LT(linkage.size(), 300u);
  const std::string name = demangled(linkage);
  EXPECT_EQ(name.size(), kMaxSymbolNameBytes);
  EXPECT_TRUE(name.starts_with("f(std::pair<int, int>, ")) << name.substr(0, 80);
  EXPECT_TRUE(name.ends_with("..."));
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()") << "the demangler continues after a jump out of it";
}

TEST(Demangle, ClockTicksWhileItLives) {
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

volatile sig_atomic_t ticks_seen = 0;
void (*tick_of_the_clock)(int) = nullptr;

void see_tick(int number) {
  ticks_seen = ticks_seen + 1;
  tick_of_the_clock(number);
}

// A pack expansion is searched for its pack, type within type, before any text comes out: each
// pair holds the one before it twice, so the search takes seconds.
std::string slow_name() {
  std::string type = "S_IiiE";
  for (const char digit : std::string_view("0123456789ABCDEFGHIJKLMNOPQR")) {
    type.insert(0, "S_I");
    type += std::string("S") + digit + "_E";
  }
  return "_Z1fDpSt4pair" + type.substr(2);
}

// SYMBOLIZE.md "Demangling": 100 ms of CPU time are five ticks.
TEST(Demangle, NameThatTakesTooLongStaysAsItIs) {
  if (fakes::kSanitized) GTEST_SKIP() << "a sanitizer holds signals back";
  const DemangleClock clock;
  struct sigaction action{};
  ASSERT_EQ(::sigaction(SIGVTALRM, nullptr, &action), 0);
  tick_of_the_clock = action.sa_handler;
  action.sa_handler = see_tick;
  ASSERT_EQ(::sigaction(SIGVTALRM, &action, nullptr), 0);
  ticks_seen = 0;
  const std::string name = slow_name();
  EXPECT_EQ(demangled(name), name);
  EXPECT_EQ(ticks_seen, 5);
  EXPECT_EQ(demangled("_ZN1a1bEv"), "a::b()") << "the demangler continues after a jump out of it";
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
