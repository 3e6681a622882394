// The library's own memcpy and the like, hidden from all other modules: the compiler calls them
// where no source names them, and the process's may belong to a checker that takes locks or keeps
// books. Not in the archive, where the C library's are the only ones.
//
// Compiled without the compiler's knowledge of these names, which would make each call itself.
#include <cstddef>
#include <cstdint>

#define COLLECT_OWN extern "C" [[gnu::visibility("hidden"), gnu::used]]

namespace {

using Vector [[gnu::vector_size(16)]] = unsigned char;
using Block [[gnu::may_alias, gnu::aligned(1)]] = Vector;
using Word [[gnu::may_alias, gnu::aligned(1)]] = uint64_t;

unsigned char* bytes_of(void* at) {
  return static_cast<unsigned char*>(at);
}
const unsigned char* bytes_of(const void* at) {
  return static_cast<const unsigned char*>(at);
}

void copy_forward(unsigned char* to, const unsigned char* from, size_t count) {
  for (; count >= sizeof(Block); count -= sizeof(Block)) {
    *reinterpret_cast<Block*>(to) = *reinterpret_cast<const Block*>(from);
    to += sizeof(Block);
    from += sizeof(Block);
  }
  if (count >= sizeof(Word)) {
    *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(from);
    to += sizeof(Word);
    from += sizeof(Word);
    count -= sizeof(Word);
  }
  for (; count > 0; --count) *to++ = *from++;
}

}  // namespace

COLLECT_OWN void* memcpy(void* to, const void* from, size_t count) {
  copy_forward(bytes_of(to), bytes_of(from), count);
  return to;
}

COLLECT_OWN void* memmove(void* to, const void* from, size_t count) {
  unsigned char* out = bytes_of(to);
  const unsigned char* in = bytes_of(from);
  // Each block is read before it is written, and the ones behind it are still whole.
  if (out <= in || out >= in + count) {
    copy_forward(out, in, count);
    return to;
  }
  while (count >= sizeof(Block)) {
    count -= sizeof(Block);
    *reinterpret_cast<Block*>(out + count) = *reinterpret_cast<const Block*>(in + count);
  }
  while (count > 0) {
    --count;
    out[count] = in[count];
  }
  return to;
}

COLLECT_OWN void* memset(void* to, int value, size_t count) {
  unsigned char* out = bytes_of(to);
  const auto byte = static_cast<unsigned char>(value);
  const Block block = byte - Block{};
  for (; count >= sizeof(Block); count -= sizeof(Block)) {
    *reinterpret_cast<Block*>(out) = block;
    out += sizeof(Block);
  }
  for (; count > 0; --count) *out++ = byte;
  return to;
}

COLLECT_OWN int memcmp(const void* first, const void* second, size_t count) {
  const unsigned char* left = bytes_of(first);
  const unsigned char* right = bytes_of(second);
  for (; count >= sizeof(Word); count -= sizeof(Word)) {
    if (*reinterpret_cast<const Word*>(left) != *reinterpret_cast<const Word*>(right)) break;
    left += sizeof(Word);
    right += sizeof(Word);
  }
  for (; count > 0; --count, ++left, ++right) {
    if (*left != *right) return *left < *right ? -1 : 1;
  }
  return 0;
}

COLLECT_OWN void* memchr(const void* in, int value, size_t count) {
  const auto byte = static_cast<unsigned char>(value);
  for (const unsigned char* at = bytes_of(in); count > 0; --count, ++at) {
    if (*at == byte) return const_cast<unsigned char*>(at);
  }
  return nullptr;
}

COLLECT_OWN size_t strlen(const char* text) {
  const char* end = text;
  while (*end != '\0') ++end;
  return static_cast<size_t>(end - text);
}

COLLECT_OWN size_t strnlen(const char* text, size_t most) {
  size_t bytes = 0;
  while (bytes < most && text[bytes] != '\0') ++bytes;
  return bytes;
}

COLLECT_OWN int strncmp(const char* first, const char* second, size_t most) {
  for (size_t i = 0; i < most; ++i) {
    const auto left = static_cast<unsigned char>(first[i]);
    const auto right = static_cast<unsigned char>(second[i]);
    if (left != right) return left < right ? -1 : 1;
    if (left == '\0') break;
  }
  return 0;
}

COLLECT_OWN int strcmp(const char* first, const char* second) {
  return strncmp(first, second, SIZE_MAX);
}

COLLECT_OWN char* strchr(const char* text, int value) {
  for (;; ++text) {
    if (*text == static_cast<char>(value)) return const_cast<char*>(text);
    if (*text == '\0') return nullptr;
  }
}

COLLECT_OWN char* strrchr(const char* text, int value) {
  const char* found = nullptr;
  for (;; ++text) {
    if (*text == static_cast<char>(value)) found = text;
    if (*text == '\0') return const_cast<char*>(found);
  }
}
