#include "daemon/ctl/look/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

constexpr char kBegin[] = "\x1b[?1049h\x1b[?25l";  // a page of its own, no cursor
constexpr char kEnd[] = "\x1b[?25h\x1b[?1049l";
constexpr size_t kUsualColumns = 80;
constexpr size_t kUsualRows = 24;

winsize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

Screen::Screen(std::ostream& out) : out_(out), at_end_([this] { give_back(); }) {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios keys = before_;
  // Ctrl-C is a key too.
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  put_control(out_, kBegin);
  out_.flush();
}

Screen::~Screen() {
  give_back();
}

// Past the stream, whose lock another thread may hold.
void Screen::give_back() {
  (void)!::write(STDOUT_FILENO, kEnd, sizeof kEnd - 1);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::show(const std::vector<std::string>& lines) {
  put_control(out_, "\x1b[H");
  for (size_t i = 0; i < lines.size(); ++i) {
    out_ << lines[i];
    put_control(out_, i + 1 == lines.size() ? "\x1b[K\x1b[J" : "\x1b[K\r\n");
  }
  out_.flush();
}

size_t Screen::columns() const {
  const size_t columns = size_of_terminal().ws_col;
  return columns == 0 ? kUsualColumns : columns;
}

size_t Screen::rows() const {
  const size_t rows = size_of_terminal().ws_row;
  return rows == 0 ? kUsualRows : rows;
}

}  // namespace collect::ctl
