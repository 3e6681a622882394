// What the agent asks the system: its own object, the objects and threads of the process, who it
// is, and how a process that it watches has ended. Expected values come from /proc and the C
// library.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/drain/link/control.h"
#include "agent/drain/ship/traced_process.h"
#include "agent/own_object.h"
#include "agent/platform/identity.h"
#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "tests/agent/temp_folder.h"
#include "tests/child/forked_child.h"

namespace collect::agent {
namespace {

uint64_t address_of(const void* object) {
  return reinterpret_cast<uint64_t>(object);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string first_line(const std::filesystem::path& path) {
  std::string line = text_of(path);
  line = line.substr(0, line.find('\n'));
  line.erase(line.find_last_not_of(" \r") + 1);
  return line;
}

// ---- own_object.h

const char of_this_program = 0;

TEST(OwnObject, IsTheExecutableWhenTheAgentIsLinkedIn) {
  const OwnObject own = find_own_object();
  Dl_info here{};
  ASSERT_NE(dladdr(&of_this_program, &here), 0);
  EXPECT_EQ(own.begin, address_of(here.dli_fbase));
  EXPECT_GT(own.end, address_of(&of_this_program));
  // Of the C library, and none that a sanitizer brings.
  EXPECT_FALSE(address_of(reinterpret_cast<const void*>(&getppid)) >= own.begin &&
               address_of(reinterpret_cast<const void*>(&getppid)) < own.end);
  EXPECT_TRUE(own.stays_loaded);
  EXPECT_TRUE(own.calls_are_bound) << "it is linked with -z now";
  // To the last byte that the system has mapped for it.
  uintptr_t end = 0;
  std::ifstream maps("/proc/self/maps");
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path)) end = std::stoul(line.substr(line.find('-') + 1), nullptr, 16);
  }
  EXPECT_GE(own.end + 4096, end);
}

struct Linked {
  const char* file;
  bool calls_are_bound;
  bool stays_loaded;
};

TEST(OwnObject, LibrariesAreAsTheyAreLinked) {
  for (const Linked& given :
       {Linked{OWN_OBJECT_LAZY, false, false}, Linked{OWN_OBJECT_NOW, true, false},
        Linked{OWN_OBJECT_STAYS, false, true}}) {
    void* const library = dlopen(given.file, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    void* const ask = dlsym(library, "ask_own_object");
    OwnObject own;
    reinterpret_cast<void (*)(OwnObject*)>(ask)(&own);
    EXPECT_LE(own.begin, address_of(ask));
    EXPECT_GT(own.end, address_of(ask));
    EXPECT_FALSE(address_of(&of_this_program) >= own.begin &&
                 address_of(&of_this_program) < own.end);
    EXPECT_EQ(own.calls_are_bound, given.calls_are_bound) << given.file;
    EXPECT_EQ(own.stays_loaded, given.stays_loaded) << given.file;
    dlclose(library);
  }
}

// ---- loaded_objects.h

struct Seen {
  LoadedObject object;
  std::string path;
  std::vector<uint8_t> build_id;
};

std::vector<Seen> seen_objects(uint32_t build_id_room = 64) {
  struct Visit {
    std::vector<Seen> seen;
    uint32_t room;
  } visit{{}, build_id_room};
  for_each_object(
      [](const LoadedObject& object, void* argument) {
        auto& wanted = *static_cast<Visit*>(argument);
        Seen one{object, object.path, std::vector<uint8_t>(wanted.room)};
        one.build_id.resize(read_build_id(object, one.build_id.data(), wanted.room));
        wanted.seen.push_back(one);
      },
      &visit);
  return visit.seen;
}

// The section that `readelf -n` shows, found by the section headers of the file.
std::vector<uint8_t> build_id_in_file(const std::string& path) {
  const std::string file = text_of(path);
  ElfW(Ehdr) head{};
  std::memcpy(&head, file.data(), sizeof head);
  std::vector<ElfW(Shdr)> sections(head.e_shnum);
  std::memcpy(sections.data(), file.data() + head.e_shoff, sections.size() * sizeof sections[0]);
  const char* const names = file.data() + sections[head.e_shstrndx].sh_offset;
  for (const ElfW(Shdr) & section : sections) {
    if (std::string(names + section.sh_name) != ".note.gnu.build-id") continue;
    const char* const begin = file.data() + section.sh_offset;
    return {begin + 16, begin + section.sh_size};  // behind three words and "GNU"
  }
  return {};
}

TEST(LoadedObjects, AreThoseOfTheProcess) {
  const std::vector<Seen> seen = seen_objects();
  ASSERT_GE(seen.size(), 3u);
  Dl_info here{};
  ASSERT_NE(dladdr(&of_this_program, &here), 0);
  EXPECT_EQ(seen[0].path, "");
  EXPECT_EQ(seen[0].object.begin, address_of(here.dli_fbase));
  EXPECT_LE(seen[0].object.begin, address_of(&of_this_program));
  EXPECT_GT(seen[0].object.end, address_of(&of_this_program));
  const OwnObject own = find_own_object();
  EXPECT_EQ(seen[0].object.begin, own.begin);
  EXPECT_EQ(seen[0].object.end, own.end);
  for (const Seen& one : seen) {
    EXPECT_LT(one.object.begin, one.object.end) << one.path;
    for (const Seen& other : seen) {
      if (&one == &other) continue;
      EXPECT_TRUE(one.object.end <= other.object.begin || other.object.end <= one.object.begin)
          << one.path << " " << other.path;
    }
  }
  // The C library, at its symbol's value.
  Dl_info library{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "getpid"), &library), 0);
  bool found = false;
  for (const Seen& one : seen) found = found || one.path == library.dli_fname;
  EXPECT_TRUE(found) << library.dli_fname;
}

TEST(LoadedObjects, HaveTheBuildIdOfTheirFile) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  const std::vector<uint8_t> wanted = build_id_in_file(path);
  ASSERT_FALSE(wanted.empty()) << "it is linked with --build-id";
  EXPECT_EQ(seen_objects()[0].build_id, wanted);
  const std::vector<uint8_t> cut = seen_objects(5)[0].build_id;
  EXPECT_EQ(cut, std::vector<uint8_t>(wanted.begin(), wanted.begin() + 5));
  size_t libraries = 0;
  for (const Seen& one : seen_objects()) {
    if (!one.path.starts_with('/')) continue;  // the kernel's own has no file
    ++libraries;
    EXPECT_EQ(one.build_id, build_id_in_file(one.path)) << one.path;
  }
  EXPECT_GE(libraries, 2u);
}

TEST(LoadedObjects, ReadsOnlyTheBuildIdNote) {
  struct Note {
    ElfW(Nhdr) head;
    char name[4];
    uint8_t content[8];
  };
  // Others of the same owner and of the same type come first; one has a length that is padded.
  Note notes[] = {{{4, 3, NT_GNU_ABI_TAG}, "GNU", {1, 2, 3}},
                  {{4, 8, NT_GNU_BUILD_ID}, {'X', 'Y', 'Z', 0}, {4}},
                  {{4, 7, NT_GNU_BUILD_ID}, "GNU", {7, 6, 5, 4, 3, 2, 1}}};
  // The first one's content takes a word.
  std::vector<uint8_t> bytes(reinterpret_cast<uint8_t*>(notes),
                             reinterpret_cast<uint8_t*>(notes) + 20);
  bytes.insert(bytes.end(), reinterpret_cast<uint8_t*>(&notes[1]),
               reinterpret_cast<uint8_t*>(&notes[3]));
  ElfW(Phdr) segments[2] = {};
  segments[0].p_type = PT_LOAD;
  segments[1].p_type = PT_NOTE;
  segments[1].p_vaddr = address_of(bytes.data());
  segments[1].p_memsz = bytes.size();
  LoadedObject object{};
  object.headers = segments;
  object.header_count = 2;
  uint8_t out[64];
  ASSERT_EQ(read_build_id(object, out, sizeof out), 7u);
  EXPECT_EQ(std::memcmp(out, notes[2].content, 7), 0);
  EXPECT_EQ(read_build_id(object, out, 7), 7u);
  EXPECT_EQ(read_build_id(object, out, 6), 6u);
  // Cut within the last one: it is not read beyond the end.
  segments[1].p_memsz = bytes.size() - 2;
  EXPECT_EQ(read_build_id(object, out, sizeof out), 0u);
  segments[1].p_memsz = bytes.size() - 1;
  EXPECT_EQ(read_build_id(object, out, sizeof out), 7u);
  object.header_count = 1;
  EXPECT_EQ(read_build_id(object, out, sizeof out), 0u);
}

struct Counted {
  uint64_t loads = 0;
  uint64_t unloads = 0;
  size_t objects = 0;
};
Counted counted_objects() {
  Counted counted;
  with_objects(
      [](uint64_t loads, uint64_t unloads, void* argument) {
        auto& into = *static_cast<Counted*>(argument);
        into.loads += loads;
        into.unloads += unloads;
        into.objects = seen_objects().size();
      },
      &counted);
  return counted;
}

TEST(LoadedObjects, ChangesAreCounted) {
  const Counted before = counted_objects();
  EXPECT_GE(before.loads, before.objects - 1);
  void* const library = dlopen(OWN_OBJECT_LAZY, RTLD_NOW);
  const Counted with = counted_objects();
  EXPECT_EQ(with.loads, before.loads + 1);
  EXPECT_EQ(with.unloads, before.unloads);
  EXPECT_EQ(with.objects, before.objects + 1);
  dlclose(library);
  const Counted after = counted_objects();
  EXPECT_EQ(after.loads, with.loads);
  EXPECT_EQ(after.unloads, before.unloads + 1);
  EXPECT_EQ(after.objects, before.objects);
  EXPECT_FALSE(objects_changed());
}

TEST(LoadedObjects, PathOfTheExecutableIsCutAtTheRoom) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<char> out(path.size() + 2, 'x');
  EXPECT_EQ(read_executable_path(out.data(), out.size()), path.size());
  EXPECT_EQ(out.data(), path);
  out.assign(out.size(), 'x');
  EXPECT_EQ(read_executable_path(out.data(), 6), 5u);
  EXPECT_EQ(std::string(out.data()), path.substr(0, 5));
  EXPECT_EQ(out[6], 'x');
}

// ---- identity.h

TEST(Identity, RandomBytesFillWhatIsAskedFor) {
  // Each byte is 0 in all of the draws once in 256^8.
  constexpr size_t kBytes = 2000, kDraws = 8;
  uint8_t any[kBytes] = {};
  for (size_t i = 0; i < kDraws; ++i) {
    uint8_t drawn[kBytes + 1] = {};
    ASSERT_TRUE(fill_random(drawn, kBytes));
    for (size_t k = 0; k < kBytes; ++k) any[k] = static_cast<uint8_t>(any[k] | drawn[k]);
    EXPECT_EQ(drawn[kBytes], 0);
  }
  for (const uint8_t byte : any) EXPECT_NE(byte, 0);
}

TEST(Identity, NamesProcessDeviceAndBoot) {
  collect_wire_Hello hello = collect_wire_Hello_init_zero;
  fill_system(hello);
  EXPECT_EQ(hello.os, collect_wire_Os_OS_LINUX);
  EXPECT_EQ(hello.process_name, first_line("/proc/self/comm"));
  EXPECT_EQ(hello.boot_id, first_line("/proc/sys/kernel/random/boot_id"));
  EXPECT_EQ(std::string(hello.boot_id).size(), 36u);
  EXPECT_EQ(hello.executable, std::filesystem::read_symlink("/proc/self/exe"));
  std::string model = first_line("/sys/class/dmi/id/product_name");
  if (model.empty()) model = first_line("/proc/device-tree/model").c_str();
  EXPECT_EQ(hello.device_model, model);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  EXPECT_EQ(hello.device_id, std::string(host).substr(0, sizeof hello.device_id - 1));
}

TEST(Identity, NameEndsWithItsLineAndWithoutSpaces) {
  char before[16];
  ASSERT_EQ(prctl(PR_GET_NAME, before), 0);
  for (const auto& [given, wanted] :
       {std::pair{"two words  ", "two words"}, std::pair{"first\nsecond", "first"},
        std::pair{"x\r\ny", "x"}, std::pair{"   ", ""}}) {
    ASSERT_EQ(prctl(PR_SET_NAME, given), 0);
    collect_wire_Hello hello = collect_wire_Hello_init_zero;
    fill_system(hello);
    EXPECT_STREQ(hello.process_name, wanted) << given;
  }
  prctl(PR_SET_NAME, before);
}

TEST(Identity, FileIsReadToItsEndOrTheRoom) {
  const TempFolder folder;
  const std::string path = folder.path() / "file";
  const std::string content(10'000, 'c');
  std::ofstream(path) << content;
  std::vector<char> out(content.size() + 10, 'x');
  EXPECT_EQ(read_file(path.c_str(), out.data(), out.size()), content.size());
  EXPECT_EQ(std::string(out.data(), content.size()), content);
  EXPECT_EQ(out[content.size()], 'x');
  out.assign(out.size(), 'x');
  EXPECT_EQ(read_file(path.c_str(), out.data(), 100), 100u);
  EXPECT_EQ(out[99], 'c');
  EXPECT_EQ(out[100], 'x');
  EXPECT_EQ(read_file((folder.path() / "none").c_str(), out.data(), out.size()), 0u);
  EXPECT_EQ(read_file(folder.path().c_str(), out.data(), out.size()), 0u);
}

// ---- threads.h

TEST(Threads, HaveNumbersAndNames) {
  EXPECT_EQ(os_thread_id(), static_cast<uint32_t>(getpid()));
  uint32_t other = 0;
  std::atomic<bool> done{false};
  std::atomic<bool> ready{false};
  std::thread thread([&] {
    other = os_thread_id();
    pthread_setname_np(pthread_self(), "a-long-one-here");
    ready = true;
    while (!done) std::this_thread::yield();
  });
  while (!ready) std::this_thread::yield();
  EXPECT_TRUE(std::filesystem::exists("/proc/self/task/" + std::to_string(other)));
  EXPECT_NE(other, os_thread_id());
  for (const pid_t process : {0, getpid()}) {
    char name[32] = "before";
    EXPECT_TRUE(read_thread_name(process, other, name, sizeof name));
    EXPECT_STREQ(name, "a-long-one-here");
    char small[9] = "xxxxxxxx";
    EXPECT_TRUE(read_thread_name(process, other, small, 8));
    EXPECT_STREQ(small, "a-long-");
  }
  const LivingThreads living(getpid());
  EXPECT_TRUE(living.contains(os_thread_id()));
  EXPECT_TRUE(living.contains(other));
  EXPECT_FALSE(only_this_thread_left());
  done = true;
  thread.join();
  // The kernel may take a moment to take the number back.
  while (std::filesystem::exists("/proc/self/task/" + std::to_string(other))) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(LivingThreads(getpid()).contains(other));
  char name[32] = "before";
  EXPECT_FALSE(read_thread_name(0, other, name, sizeof name));
  EXPECT_STREQ(name, "before");
  EXPECT_FALSE(only_this_thread_left()) << "the main thread lives";
}

TEST(Threads, SleepGivesTheProcessorUpOnce) {
  rusage before{};
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_EQ(voluntary_switches(), static_cast<uint64_t>(before.ru_nvcsw));
  for (int i = 0; i < 3; ++i) usleep(1000);
  EXPECT_GE(voluntary_switches(), static_cast<uint64_t>(before.ru_nvcsw) + 3);
}

TEST(EndProcess, EndsWithItsCode) {
  EXPECT_TRUE(child::forked([]() -> int { sys::end_process(7); }).exited_with(7));
}

TEST(EndProcess, TrapEndsItWhereAFilterRefuses) {
  const child::Ending ending = child::forked([]() -> int {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(code), code};
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    sys::end_process(7);
  });
  EXPECT_TRUE(ending.signal == SIGILL || ending.signal == SIGTRAP) << ending.describe();
}

// The main thread has left; its other thread looks until it is alone.
TEST(Threads, CountsTheLastThreadAfterTheMainThreadLeft) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  child::ForkedChild child([&]() -> int {
    static int answer;
    answer = report[1];
    static std::atomic<bool> middle_may_end{false};
    pthread_t last;
    pthread_t middle;
    pthread_create(
        &middle, nullptr,
        [](void*) -> void* {
          while (!middle_may_end) std::this_thread::yield();
          return nullptr;
        },
        nullptr);
    pthread_create(
        &last, nullptr,
        [](void*) -> void* {
          // Until the main thread shows as ended, and with another one still there.
          while (text_of("/proc/self/stat").find(") Z ") == std::string::npos) usleep(1000);
          const char first = only_this_thread_left() ? 'y' : 'n';
          middle_may_end = true;
          while (std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}) > 2) {
            usleep(1000);
          }
          const char second = only_this_thread_left() ? 'y' : 'n';
          const char both[] = {first, second};
          _exit(write(answer, both, 2) == 2 ? 0 : 1);
        },
        nullptr);
    for (;;) syscall(SYS_exit, 0);  // of this thread alone, and nothing is unwound
  });
  close(report[1]);
  char both[2] = {};
  EXPECT_EQ(read(report[0], both, 2), 2);
  EXPECT_EQ(std::string(both, 2), "ny");
  EXPECT_EQ(child.wait().describe(), "exit 0");
  close(report[0]);
}

// ---- traced_process.h

class TracedProcessTest : public testing::Test {
 protected:
  void TearDown() override {
    close(pidfd);
    close(alive);
  }
  // A child that has the file mapped, and then does `act`.
  void watch(const std::function<void()>& act) {
    alive = static_cast<int>(syscall(SYS_memfd_create, "alive", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    forked.emplace([&](const child::ForkedChild::Ready& ready) {
      memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, alive, 0);
      ready();
      act();
      return child::pause_until_killed();
    });
    ASSERT_TRUE(forked->was_ready());
    pidfd = static_cast<int>(syscall(SYS_pidfd_open, forked->pid(), 0));
    ASSERT_GE(pidfd, 0);
    traced.watch(forked->pid(), pidfd, alive);
  }
  // Dead, and no one has waited for it.
  void wait_for_death() const {
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(forked->pid()), &info, WEXITED | WNOWAIT), 0);
  }
  void reap() { forked->wait(); }
  TracedProcess::Life look(uint64_t exit_code = 0) {
    traced.look_soon();
    return traced.look(now_ms += 10, exit_code);
  }
  TracedProcess::Life look_until_ended(uint64_t exit_code = 0) {
    TracedProcess::Life life = look(exit_code);
    while (life == TracedProcess::Life::kLives) {
      usleep(1000);
      life = look(exit_code);
    }
    return life;
  }

  using Life = TracedProcess::Life;
  static inline void* memory = nullptr;
  TracedProcess traced;
  std::optional<child::ForkedChild> forked;
  int pidfd = -1;
  int alive = -1;
  uint64_t now_ms = 1000;
};

TEST_F(TracedProcessTest, LivesAndStopsAndContinues) {
  watch([] {});
  EXPECT_EQ(look(), Life::kLives);
  EXPECT_TRUE(traced.has_memory());
  EXPECT_FALSE(traced.is_stopped());
  EXPECT_EQ(traced.poll_fd(), pidfd);
  EXPECT_FALSE(is_process_over(forked->pid()));
  int status = 0;
  forked->send_signal(SIGSTOP);
  ASSERT_EQ(waitpid(forked->pid(), &status, WUNTRACED), forked->pid());
  EXPECT_TRUE(traced.is_stopped());
  EXPECT_EQ(look(), Life::kLives);
  forked->send_signal(SIGCONT);
  ASSERT_EQ(waitpid(forked->pid(), &status, WCONTINUED), forked->pid());
  EXPECT_FALSE(traced.is_stopped());
}

TEST_F(TracedProcessTest, ExitHasItsCode) {
  for (const bool is_reaped : {false, true}) {
    watch([] { _exit(200); });
    wait_for_death();
    EXPECT_TRUE(is_process_over(forked->pid()));
    const pid_t number = forked->pid();
    if (is_reaped) reap();
    EXPECT_TRUE(is_process_over(number));
    EXPECT_EQ(look(), Life::kEnded);
    EXPECT_EQ(traced.end().how, collect_wire_ProcessEnd_How_EXITED);
    EXPECT_EQ(traced.end().exit_code, 200);
    EXPECT_STREQ(traced.reason(), "exit");
    EXPECT_EQ(traced.poll_fd(), -1);
    EXPECT_FALSE(traced.is_stopped());
    if (!is_reaped) reap();
    EXPECT_EQ(look(), Life::kEnded);
    EXPECT_EQ(traced.end().exit_code, 200);
    close(pidfd);
    close(alive);
  }
  pidfd = alive = -1;
}

TEST_F(TracedProcessTest, SignalHasItsNameIfItHasOne) {
  for (const auto& [number, reason] :
       {std::pair{SIGKILL, std::string("killed by SIGKILL")},
        std::pair{SIGPROF, std::string("killed by SIGPROF")},
        std::pair{SIGRTMIN + 3, "killed by signal " + std::to_string(SIGRTMIN + 3)}}) {
    const int wanted = number;
    watch([wanted] { raise(wanted); });
    wait_for_death();
    EXPECT_EQ(look(), Life::kEnded);
    EXPECT_EQ(traced.end().how, collect_wire_ProcessEnd_How_SIGNALED);
    EXPECT_EQ(traced.end().signal, static_cast<uint32_t>(number));
    EXPECT_FALSE(traced.end().core_dumped);
    EXPECT_EQ(traced.reason(), reason);
    reap();
    close(pidfd);
    close(alive);
  }
  pidfd = alive = -1;
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* const known = sigabbrev_np(number);
    const char* const name = signal_name(number);
    if (name == nullptr || number == SIGIO) continue;  // which has two names
    EXPECT_EQ(std::string(name), std::string("SIG") + known) << number;
  }
  EXPECT_EQ(signal_name(0), nullptr);
  EXPECT_EQ(signal_name(SIGRTMIN), nullptr);
}

TEST_F(TracedProcessTest, ExecIsSeenByTheMemoryThatIsGone) {
  watch([] { execlp("sleep", "sleep", "100", nullptr); });
  EXPECT_EQ(look_until_ended(), Life::kEnded);
  EXPECT_FALSE(traced.has_memory());
  EXPECT_EQ(traced.end().how, collect_wire_ProcessEnd_How_EXECED);
  EXPECT_STREQ(traced.reason(), "replaced by exec");
  EXPECT_FALSE(is_process_over(forked->pid()));
}

// Between two looks nothing is asked.
TEST_F(TracedProcessTest, LooksAreApart) {
  watch([] {});
  EXPECT_EQ(traced.look(1000, 0), Life::kLives);
  forked->send_signal(SIGKILL);
  wait_for_death();
  EXPECT_EQ(traced.look(1000 + kLookMs - 1, 0), Life::kLives);
  EXPECT_EQ(traced.look(1000 + kLookMs, 0), Life::kEnded);
}

}  // namespace
}  // namespace collect::agent
