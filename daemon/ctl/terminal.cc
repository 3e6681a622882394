#include "daemon/ctl/terminal.h"

#include "formats/core/printable.h"

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

}  // namespace collect::ctl
