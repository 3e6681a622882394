#include "daemon/ctl/terminal/terminal.h"

#include <algorithm>
#include <chrono>

#include "formats/core/text/printable.h"

namespace collect::ctl {

PrintableBuffer::~PrintableBuffer() {
  pass(printable(held_));  // the output ended within a character
  sink_.pubsync();
}

bool PrintableBuffer::write_control(std::string_view sequence) {
  const std::string cut = printable(held_);
  held_.clear();
  return pass(cut) && pass(sequence);
}

bool PrintableBuffer::pass(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return sink_.sputn(text.data(), size) == size;
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  std::string_view rest(text, static_cast<size_t>(size));
  // Nearly everything is plain and is not copied.
  if (held_.empty()) {
    const size_t plain = plain_text_prefix(rest);
    if (!pass(rest.substr(0, plain))) return 0;
    rest.remove_prefix(plain);
    if (rest.empty()) return size;
  }
  held_ += rest;
  escaped_.clear();
  const size_t cut = append_printable_text(escaped_, held_);
  held_.erase(0, held_.size() - cut);
  return pass(escaped_) ? size : 0;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

bool wants_color(ColorChoice choice, bool is_terminal, const char* no_color, const char* term) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kOn;
  const bool is_plain = no_color != nullptr && *no_color != '\0';
  return is_terminal && !is_plain && (term == nullptr || std::string_view(term) != "dumb");
}

size_t columns_of(std::string_view text) {
  // Continuation bytes of UTF-8 take no room.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string cut_to(std::string_view text, size_t columns) {
  if (columns == 0 || columns_of(text) <= columns) return std::string(text);
  size_t end = 0;
  for (size_t left = columns; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && --left == 0) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string cut_to_end(std::string_view text, size_t columns) {
  const size_t all = columns_of(text);
  if (columns == 0 || all <= columns) return std::string(text);
  size_t begin = 0;
  for (size_t left = all - columns + 2; begin < text.size(); ++begin) {
    const bool begins = (static_cast<unsigned char>(text[begin]) & 0xc0) != 0x80;
    if (begins && --left == 0) break;
  }
  return "…" + std::string(text.substr(begin));
}

size_t columns_left(size_t columns, size_t used) {
  constexpr size_t kLeast = 16;  // of a name; a narrower terminal breaks the line
  return columns == 0 ? 0 : columns > used + kLeast ? columns - used : kLeast;
}

void put_control(std::ostream& out, std::string_view sequence) {
  if (auto* const buffer = dynamic_cast<PrintableBuffer*>(out.rdbuf())) {
    if (!buffer->write_control(sequence)) out.setstate(std::ios::badbit);
  } else {
    out << sequence;
  }
}

void restart_line(std::ostream& out) {
  put_control(out, "\r\x1b[K");
}

std::function<void(uint64_t done, uint64_t all)> percent_line(std::ostream& out, bool wanted,
                                                              std::string_view doing) {
  if (!wanted) return [](uint64_t, uint64_t) {};
  return [&out, doing = std::string(doing), next = std::chrono::steady_clock::time_point()](
             uint64_t done, uint64_t all) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (done >= all) {
      restart_line(out);
      out.flush();
    } else if (now >= next) {
      next = now + std::chrono::milliseconds(100);
      restart_line(out);
      out << doing << " " << done * 100 / std::max<uint64_t>(all, 1) << " %" << std::flush;
    }
  };
}

}  // namespace collect::ctl
