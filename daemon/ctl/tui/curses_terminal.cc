#include "daemon/ctl/tui/curses_terminal.h"

#include <fmt/core.h>
#include <langinfo.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string_view>

#define NCURSES_NOMACROS
#include <curses.h>

namespace collect::ctl::tui {
namespace {

constexpr std::chrono::milliseconds kDrawingPatience{500};
constexpr int kEscapeMs = 100;  // behind Esc, until it is the key
constexpr short kHeadingPair = 1, kChosenPair = 2, kSectionPair = 3, kMessagePair = 4,
                kTitlePair = 5;

// ---- for a crash, whose handler may only write and set the terminal

termios& modes_before() {
  static termios modes{};
  return modes;
}

std::array<char, 256>& end_sequence() {
  static std::array<char, 256> text{};
  return text;
}

void give_back_after_crash(int number) {
  (void)!::write(STDOUT_FILENO, end_sequence().data(), std::strlen(end_sequence().data()));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before());
  ::raise(number);  // takes effect on return, as if there were no handler
}

void catch_crashes() {
  std::string text;
  for (const char* name : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
    const char* sequence = ::tigetstr(name);
    if (sequence != nullptr && sequence != reinterpret_cast<const char*>(-1)) text += sequence;
  }
  if (text.size() < end_sequence().size()) std::ranges::copy(text, end_sequence().begin());
  struct sigaction action{};
  action.sa_handler = give_back_after_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    ::sigaction(number, &action, nullptr);
  }
}

// What is printed is UTF-8, as of every command.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

void choose_colors() {
  ::start_color();
  ::use_default_colors();
  ::init_pair(kHeadingPair, COLOR_CYAN, -1);
  ::init_pair(kChosenPair, COLOR_BLACK, COLOR_CYAN);
  ::init_pair(kSectionPair, COLOR_GREEN, -1);
  ::init_pair(kMessagePair, COLOR_YELLOW, -1);
  ::init_pair(kTitlePair, COLOR_BLACK, COLOR_GREEN);
}

attr_t attributes_of(Style style, bool color) {
  const auto pair = [](short number) { return static_cast<attr_t>(COLOR_PAIR(number)); };
  switch (style) {
    case Style::kTitle:
      return color ? pair(kTitlePair) : A_REVERSE;
    case Style::kHeading:
      return color ? pair(kHeadingPair) | A_BOLD : A_BOLD;
    case Style::kSection:
      return color ? pair(kSectionPair) : A_NORMAL;
    case Style::kChosen:
      return color ? pair(kChosenPair) : A_REVERSE;
    case Style::kMessage:
      return color ? pair(kMessagePair) | A_BOLD : A_BOLD;
    case Style::kName:
      return A_BOLD;
    case Style::kFoot:
    case Style::kPlain:
      return A_NORMAL;
  }
  return A_NORMAL;
}

// As terminals send them in either mode, also where TERM says otherwise.
void define_keys() {
  struct Sequence {
    const char* bytes;
    int key;
  };
  for (const auto& [bytes, key] :
       {Sequence{"\x1b[A", KEY_UP}, Sequence{"\x1bOA", KEY_UP}, Sequence{"\x1b[B", KEY_DOWN},
        Sequence{"\x1bOB", KEY_DOWN}, Sequence{"\x1b[C", KEY_RIGHT}, Sequence{"\x1bOC", KEY_RIGHT},
        Sequence{"\x1b[D", KEY_LEFT}, Sequence{"\x1bOD", KEY_LEFT}, Sequence{"\x1b[H", KEY_HOME},
        Sequence{"\x1bOH", KEY_HOME}, Sequence{"\x1b[1~", KEY_HOME}, Sequence{"\x1b[F", KEY_END},
        Sequence{"\x1bOF", KEY_END}, Sequence{"\x1b[4~", KEY_END}, Sequence{"\x1b[5~", KEY_PPAGE},
        Sequence{"\x1b[6~", KEY_NPAGE}}) {
    ::define_key(bytes, key);
  }
}

// The text in at most so many columns, with characters that take two.
std::wstring wide_text(const std::string& text, int columns, int& used) {
  std::wstring wide;
  std::mbstate_t state{};
  const char* at = text.data();
  const char* const end = at + text.size();
  used = 0;
  while (at < end) {
    wchar_t character = 0;
    const size_t bytes = std::mbrtowc(&character, at, static_cast<size_t>(end - at), &state);
    if (bytes == 0 || bytes > static_cast<size_t>(end - at)) break;
    const int width = std::max(::wcwidth(character), 0);
    if (used + width > columns) break;
    used += width;
    wide += character;
    at += bytes;
  }
  return wide;
}

std::optional<Key> key_of(wint_t code) {
  switch (code) {
    case KEY_UP:
      return Key::kUp;
    case KEY_DOWN:
      return Key::kDown;
    case KEY_LEFT:
      return Key::kLeft;
    case KEY_RIGHT:
      return Key::kRight;
    case KEY_PPAGE:
      return Key::kPageUp;
    case KEY_NPAGE:
      return Key::kPageDown;
    case KEY_HOME:
      return Key::kHome;
    case KEY_END:
      return Key::kEnd;
    case KEY_ENTER:
      return Key::kEnter;
    case KEY_BACKSPACE:
      return Key::kBackspace;
    default:
      return std::nullopt;
  }
}

KeyPress key_of_character(wint_t character) {
  switch (character) {
    case L'\r':
    case L'\n':
      return {Key::kEnter};
    case 0x08:
    case 0x7F:
      return {Key::kBackspace};
    case 0x1B:
      return {Key::kEscape};
    default:
      break;
  }
  std::array<char, 16> bytes{};
  std::mbstate_t state{};
  const size_t size = std::wcrtomb(bytes.data(), static_cast<wchar_t>(character), &state);
  const bool is_shown = character >= 0x20 && size <= bytes.size();
  return {Key::kText, is_shown ? std::string(bytes.data(), size) : std::string()};
}

}  // namespace

Result<std::unique_ptr<CursesTerminal>> CursesTerminal::open(bool color) {
  const char* const term = std::getenv("TERM");
  const auto refused = [&](std::string_view why) {
    return Error{Code::kUnsupported,
                 fmt::format("the terminal (TERM={}) {}: report without --tui prints text",
                             term == nullptr ? "" : term, why)};
  };
  use_utf8();
  ::tcgetattr(STDIN_FILENO, &modes_before());
  if (::newterm(nullptr, stdout, stdin) == nullptr) return refused("is not known here");
  const char* const move = ::tigetstr("cup");
  if (move == nullptr || move == reinterpret_cast<const char*>(-1)) {
    ::endwin();
    return refused("cannot move its cursor");
  }
  return std::unique_ptr<CursesTerminal>(new CursesTerminal(color && ::has_colors()));
}

CursesTerminal::CursesTerminal(bool color) : color_(color), at_end_([this] { give_back(); }) {
  // Taken only while waiting for keys, so that none is missed.
  sigset_t resized;
  sigemptyset(&resized);
  sigaddset(&resized, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &resized, nullptr);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::set_escdelay(kEscapeMs);
  ::keypad(stdscr, true);
  define_keys();
  ::nodelay(stdscr, true);
  ::curs_set(0);
  if (color_) choose_colors();
  catch_crashes();
}

CursesTerminal::~CursesTerminal() {
  const std::lock_guard lock(drawing_);
  ::endwin();
}

// On the thread that waits for signals. The mutex is kept: nothing is drawn afterwards.
void CursesTerminal::give_back() {
  if (drawing_.try_lock_for(kDrawingPatience)) {
    ::endwin();
  } else {  // the terminal takes nothing
    ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before());
  }
}

void CursesTerminal::put(const Line& line, int row) {
  int used = 0;
  const std::wstring wide = wide_text(line.text, COLS, used);
  const bool fills_line = line.style == Style::kTitle || line.style == Style::kChosen;
  ::attrset(static_cast<int>(attributes_of(line.style, color_)));
  ::mvaddnwstr(row, 0, wide.data(), static_cast<int>(wide.size()));
  for (; fills_line && used < COLS; ++used) ::addch(' ');
  ::attrset(A_NORMAL);
}

void CursesTerminal::show(const std::vector<Line>& lines) {
  const std::lock_guard lock(drawing_);
  ::erase();
  for (size_t row = 0; row < lines.size() && row < static_cast<size_t>(LINES); ++row) {
    put(lines[row], static_cast<int>(row));
  }
  ::refresh();
}

void CursesTerminal::show_busy(const std::string& text) {
  const std::lock_guard lock(drawing_);
  ::move(LINES - 1, 0);
  ::clrtoeol();
  put({text, Style::kMessage}, LINES - 1);
  ::refresh();
}

size_t CursesTerminal::columns() const {
  return static_cast<size_t>(COLS);
}

size_t CursesTerminal::rows() const {
  return static_cast<size_t>(LINES);
}

std::optional<CursesTerminal::Wait> CursesTerminal::read_key(KeyPress& key) {
  const std::lock_guard lock(drawing_);
  wint_t code = 0;
  const int got = ::get_wch(&code);
  if (got == ERR) return std::nullopt;
  if (got == KEY_CODE_YES && code == KEY_RESIZE) return Wait::kChanged;
  if (got == OK) {
    key = key_of_character(code);
  } else if (const auto known = key_of(code)) {
    key = {*known};
  } else {
    key = {};
  }
  return Wait::kKey;
}

CursesTerminal::Wait CursesTerminal::wait(KeyPress& key) {
  for (;;) {
    if (const auto got = read_key(key)) return *got;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    sigdelset(&mask, SIGWINCH);
    const int ready = ::ppoll(&input, 1, nullptr, &mask);
    if (ready < 0 && errno != EINTR) return Wait::kClosed;
    // At the end of its input, too, a terminal is readable, and nothing can be read.
    if (ready > 0) {
      if (const auto got = read_key(key)) return *got;
      if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Wait::kClosed;
    }
  }
}

}  // namespace collect::ctl::tui
