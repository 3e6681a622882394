#include "tests/fakes/phones/fake_phone.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "tests/child/child_process.h"
#include "tests/fakes/phones/plain_socket.h"

namespace collect::fakes {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 10;
constexpr std::streamsize kSyncPiece = 64 << 10;

const std::map<std::string, std::string>& scripts() {
  static const std::map<std::string, std::string> all = {
      {"getprop", "[ -f \"$PHONE/props/$1\" ] && cat \"$PHONE/props/$1\"\necho\n"},
      {"setprop",
       "if [ -e \"$PHONE/refuses_properties\" ] || [ ${#2} -gt 91 ]; then\n"
       "  echo \"Failed to set property '$1' to '$2'.\" >&2; exit 1\nfi\n"
       "printf %s \"$2\" > \"$PHONE/props/$1\"\n"},
      {"run-as",
       "app=$PHONE/apps/$1\n"
       "[ -d \"$app\" ] || { echo \"run-as: unknown package: $1\" >&2; exit 1; }\n"
       "[ -e \"$app/debuggable\" ] || { echo \"run-as: package not debuggable: $1\" >&2; exit 1; "
       "}\n"
       "shift\ncd \"$app/data\" && exec \"$@\"\n"},
      {"pm", "[ -d \"$PHONE/apps/$2\" ] && echo \"package:$PHONE/apps/$2/code/base.apk\"\n"},
      {"dumpsys", "echo \"    primaryCpuAbi=$(cat \"$PHONE/apps/$2/abi\")\"\n"},
      {"cmd",
       "echo 'priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true'\n"
       "echo \"$4/.MainActivity\"\n"},
      {"pidof",
       "pid=$(cat \"$PHONE/apps/$1/pid\" 2> /dev/null)\n"
       "[ -n \"$pid\" ] && [ -d \"/proc/$pid\" ] && echo \"$pid\"\n"},
      {"logcat", "exec tail -n 0 -F \"$PHONE/log\"\n"},
      {"logwrapper", "exec \"$@\" 2>> \"$PHONE/log\"\n"},
      {"am",
       "if [ \"$1\" = attach-agent ]; then\n"
       "  say=\"java.lang.IllegalArgumentException: Unknown process: $2\"\n"
       "  for app in \"$PHONE\"/apps/*; do\n"
       "    [ \"$(cat \"$app/pid\" 2> /dev/null)\" = \"$2\" ] || continue\n"
       "    say='java.lang.SecurityException: it is not allowed'\n"
       "    [ -e \"$PHONE/refuses_agents\" ] && break\n"
       "    printf %s \"$3\" > \"$app/attach_agent.new\"\n"
       "    mv \"$app/attach_agent.new\" \"$app/attach_agent\"; exit 0\n  done\n"
       "  echo \"Exception occurred while executing 'attach-agent':\" >&2\n"
       "  echo \"$say\" >&2; exit 255\nfi\n"
       "if [ \"$1\" = force-stop ]; then\n"
       "  app=$PHONE/apps/$2\n"
       "  while pid=$(cat \"$app/pid\" 2> /dev/null) && [ -n \"$pid\" ]; do\n"
       "    kill -9 \"$pid\" 2> /dev/null; sleep 0.02\n  done\n  exit 0\nfi\n"
       "component=$4\nname=${component%%/*}\napp=$PHONE/apps/$name\n"
       "echo \"Starting: Intent { cmp=$component }\"\n"
       "if [ \"$component\" != \"$name/.MainActivity\" ]; then\n"
       "  echo \"Error: Activity class {$component} does not exist.\"; exit 1\nfi\n"
       "wrap=$(getprop \"wrap.$name\")\n"
       "for script in \"$app\"/code/lib/*/wrap.sh; do\n"
       "  [ -e \"$script\" ] && wrap=\"logwrapper sh $script\"\ndone\n"
       "(\n  cd \"$app/data\" || exit 1\n  set -a\n  . \"$app/environment\"\n  set +a\n"
       "  setsid sh -c \"echo \\$\\$ > '$app/pid'; exec $wrap $(cat \"$app/program\") "
       "--nice-name=$name\"\n"
       "  rm -f \"$app/pid\"\n"
       ") > /dev/null 2>&1 < /dev/null &\n"
       "n=0\nwhile [ ! -s \"$app/pid\" ] && [ $n -lt 25 ]; do n=$((n + 1)); sleep 0.02; done\n"
       "echo 'Status: ok'\n"}};
  return all;
}

// What a command calls /data/local/tmp is the phone's own.
std::string on_this_machine(std::string text, const std::string& folder) {
  const std::string there = FakePhoneFolder::kPhoneTemporary;
  const std::string here = folder + "/tmp";
  for (size_t at = text.find(there); at != std::string::npos; at = text.find(there, at)) {
    text.replace(at, there.size(), here);
    at += here.size();
  }
  return text;
}

std::string u32(size_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>((value >> shift) & 0xFF);
  }
  return bytes;
}

size_t u32_of(const char* bytes) {
  size_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<size_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

bool send_packet(int client, char stream, const std::string& data) {
  const std::string bytes = std::string(1, stream) + u32(data.size()) + data;
  return send_all(client, bytes.data(), bytes.size());
}

// A shell with its three pipes.
class Shell {
 public:
  Shell(const std::string& folder, const std::string& command)
      : shell_(folder, {"/bin/sh", "-c", on_this_machine(command, folder)}, environment_of(folder),
               // It leads a group so that hang_up() ends all of it, as adbd does.
               {.input = input_.read_end,
                .output = output_.write_end,
                .errors = errors_.write_end,
                .inherits_environment = false,
                .leads_group = true}) {
    input_.close_end(input_.read_end);
    output_.close_end(output_.write_end);
    errors_.close_end(errors_.write_end);
    ::signal(SIGPIPE, SIG_IGN);
  }

  int input() const { return input_.write_end; }
  int output() const { return output_.read_end; }
  int errors() const { return errors_.read_end; }
  void close_input() { input_.close_end(input_.write_end); }
  // False: at its end.
  static bool pass_on(int from, int client, char stream) {
    char bytes[4096];
    const ssize_t got = ::read(from, bytes, sizeof bytes);
    return got > 0 && send_packet(client, stream, std::string(bytes, static_cast<size_t>(got)));
  }
  // As adbd does where the connection ends first.
  void hang_up() const { ::kill(-shell_.pid(), SIGHUP); }
  int wait() {
    const int code = shell_.wait().exit_code;
    return code >= 0 ? code : 255;
  }

 private:
  struct Pipe {
    Pipe() {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
      read_end = ends[0];
      write_end = ends[1];
    }
    ~Pipe() {
      close_end(read_end);
      close_end(write_end);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    static void close_end(int& fd) {
      if (fd >= 0) ::close(fd);
      fd = -1;
    }
    int read_end;
    int write_end;
  };
  static child::Environment environment_of(const std::string& folder) {
    const char* const path = std::getenv("PATH");
    return {{"PHONE", folder},
            {"PATH", folder + "/bin:" + (path != nullptr ? path : "/usr/bin:/bin")}};
  }

  Pipe input_;
  Pipe output_;
  Pipe errors_;
  child::ChildProcess shell_;
};

bool take_input(int client, Shell& shell) {
  char header[5];
  if (!read_exactly(client, header, sizeof header)) return false;
  std::string data(u32_of(header + 1), '\0');
  if (!read_exactly(client, data.data(), data.size())) return false;
  if (header[0] == 4) {
    shell.close_input();
  } else if (shell.input() >= 0) {
    (void)!::write(shell.input(), data.data(), data.size());
  }
  return true;
}

// As adbd answers RECV.
bool give_file(int client, const std::string& path) {
  const auto say = [client](const std::string& word, const std::string& data) {
    const std::string bytes = word + u32(data.size()) + data;
    return send_all(client, bytes.data(), bytes.size());
  };
  std::ifstream file(path + FakePhoneFolder::kOnPhone, std::ios::binary);
  if (!file) file.open(path, std::ios::binary);
  if (!file) return say("FAIL", "open failed: No such file or directory");
  std::string piece(kSyncPiece, '\0');
  while (file.read(piece.data(), kSyncPiece) || file.gcount() > 0) {
    if (!say("DATA", piece.substr(0, static_cast<size_t>(file.gcount())))) return false;
  }
  return say("DONE", "");
}

}  // namespace

FakePhoneFolder::FakePhoneFolder() {
  char name[] = "/tmp/phXXXXXX";
  if (mkdtemp(name) == nullptr) std::abort();
  path_ = name;
  for (const char* folder : {"bin", "props", "tmp", "apps"}) fs::create_directory(*this / folder);
  for (const auto& [script, text] : scripts()) {
    write(*this / "bin/" + script, "#!/bin/sh\n" + text);
    chmod((*this / "bin/" + script).c_str(), 0755);
  }
  write(*this / "log", "");
  set_property("ro.product.cpu.abi", "x86_64");
  set_property("ro.build.version.sdk", "34");
  set_property("ro.product.model", "Sim Phone");
}

FakePhoneFolder::~FakePhoneFolder() {
  end_apps();
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void FakePhoneFolder::end_apps() const {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_ + "/apps", none)) {
    const int pid = std::atoi(read(entry.path().string() + "/pid").c_str());
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

void FakePhoneFolder::set_property(const std::string& name, const std::string& value) {
  write(*this / "props/" + name, value);
}

std::string FakePhoneFolder::property(const std::string& name) const {
  return read(path_ + "/props/" + name);
}

void FakePhoneFolder::install(const std::string& package, const std::string& program,
                              const std::string& environment) {
  fs::create_directories(app(package, "data/cache"));
  fs::create_directories(app(package, "code"));
  write(app(package, "program"), program + "\n");
  write(app(package, "environment"), environment);
  write(app(package, "abi"), "x86_64\n");
  write(app(package, "debuggable"), "");
}

void FakePhoneFolder::write(const std::string& path, const std::string& text) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
}

std::string FakePhoneFolder::read(const std::string& path) const {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string FakePhoneFolder::leftovers(const std::string& root) const {
  std::string found;
  for (const auto& entry : fs::recursive_directory_iterator(root + path_ + "/tmp")) {
    found += entry.path().string() + "\n";
  }
  for (const auto& entry : fs::directory_iterator(root + path_ + "/apps")) {
    for (const char* folder : {"/data/collect", "/data/cache/collect"}) {
      if (fs::exists(entry.path().string() + folder))
        found += entry.path().string() + folder + "\n";
    }
  }
  for (const auto& entry : fs::directory_iterator(path_ + "/props")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("wrap.") && !property(name).empty()) found += name + "\n";
  }
  return found;
}

bool owns_agent_socket(const std::string& folder, const std::string& name) {
  const std::string prefix = "collect_agent_";
  if (!name.starts_with(prefix)) return false;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder + "/apps", none)) {
    std::ifstream file(entry.path() / "pid");
    std::string pid;
    if (std::getline(file, pid) && name == prefix + pid) return true;
  }
  return false;
}

void serve_phone_shell(int client, const std::string& folder, const std::string& command,
                       const std::function<bool()>& goes_on) {
  Shell shell(folder, command);
  pollfd all[3] = {{client, POLLIN, 0}, {shell.output(), POLLIN, 0}, {shell.errors(), POLLIN, 0}};
  bool is_connected = true;
  while (is_connected && (all[1].fd >= 0 || all[2].fd >= 0)) {
    if (::poll(all, 3, kLookMs) < 0) break;
    if (!goes_on()) is_connected = false;
    if (is_connected && all[0].revents != 0) is_connected = take_input(client, shell);
    for (const int i : {1, 2}) {
      if (all[i].revents == 0) continue;
      if (!Shell::pass_on(all[i].fd, client, static_cast<char>(i))) all[i].fd = -1;
    }
  }
  if (!is_connected) shell.hang_up();
  shell.close_input();
  const int code = shell.wait();
  if (is_connected) send_packet(client, 3, std::string(1, static_cast<char>(code)));
}

bool serve_phone_sync(int client, const std::string& folder, const PushLimits& limits) {
  std::ofstream file;
  uint64_t taken = 0;
  char header[8];
  while (read_exactly(client, header, sizeof header)) {
    const std::string what(header, 4);
    if (what == "DONE") {
      file.close();
      const std::string okay = "OKAY" + u32(0);
      if (!send_all(client, okay.data(), okay.size())) return false;
      continue;
    }
    std::string data(u32_of(header + 4), '\0');
    if (!read_exactly(client, data.data(), data.size())) return false;
    if (what == "RECV") {
      if (!give_file(client, on_this_machine(data, folder))) return false;
      continue;
    }
    if (what == "SEND") {
      file.open(on_this_machine(data.substr(0, data.rfind(',')), folder),
                std::ios::binary | std::ios::trunc);
      continue;
    }
    taken += data.size();
    if (taken > limits.cable) return true;
    if (taken > limits.space || !file) {
      const std::string words = file ? "write failed: No space left on device"
                                     : "couldn't create file: No such file or directory";
      const std::string fail = "FAIL" + u32(words.size()) + words;
      (void)send_all(client, fail.data(), fail.size());
      // What was sent already is taken, as adbd does.
      while (::recv(client, data.data(), data.size(), 0) > 0) continue;
      return false;
    }
    file << data;
  }
  return false;
}

}  // namespace collect::fakes
