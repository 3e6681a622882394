#include "agent/drain/link/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "agent/drain/link/status.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/platform/system.h"
#include "agent/settings.h"

namespace collect::agent {
namespace {

constexpr size_t kNameBytes = 64;
constexpr int kNames = 16;  // that may be taken before it is given up

// A new file without a name, or -1 and errno. The directory is the user's own word; in it, no name
// that is there already is opened, a link as little as a file.
int open_unlinked(const char* directory) {
#ifdef O_TMPFILE
  const int unnamed = sys::open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return unnamed;
#endif
  char path[kMaxAddress + kNameBytes];
  for (int i = 0; i < kNames; ++i) {
    Text(path, sizeof path)
        .add(directory)
        .add("/collect_spool_")
        .number(static_cast<uint64_t>(sys::getpid()))
        .add("_")
        .number(monotonic_ns());
    const int fd = sys::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd >= 0) (void)sys::unlink(path);
    return fd;
  }
  return -1;
}

}  // namespace

const char* Spool::open(const char* directory, uint32_t megabytes, int* error) {
  Spool opened;
  opened.capacity_ = opened.limit_ = uint64_t{megabytes} << 20;
  opened.entry_count_ = opened.capacity_ / kSpoolBytesPerPage;
  *error = opened.file_.open([directory] { return open_unlinked(directory); });
  if (*error != 0) return "its file can't be made";
  void* const mapped = sys::mmap(nullptr, opened.entry_count_ * sizeof(Entry),
                                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    *error = errno;
    opened.file_.close();
    return "there is no memory for its table";
  }
  opened.entries_ = static_cast<Entry*>(mapped);
  close();
  *this = static_cast<Spool&&>(opened);
  return nullptr;
}

void Spool::set_limit(uint64_t bytes) {
  limit_ = bytes < capacity_ ? bytes : capacity_;
  full_since_ms_ = retry_at_ms_ = 0;
}

void Spool::close() {
  file_.close();
  if (entries_ != nullptr) (void)sys::munmap(entries_, entry_count_ * sizeof(Entry));
  *this = Spool{};
}

bool Spool::write(Bytes sent, uint64_t position) const {
  auto at = static_cast<off_t>(position % capacity_);
  while (!sent.empty()) {
    const ssize_t wrote = sys::pwrite(file_.fd(), sent.data(), sent.size(), at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    sent = sent.subspan(static_cast<size_t>(wrote));
    at += wrote;
  }
  return true;
}

bool Spool::append(SpoolChain& chain, const PageHeader& page, Bytes sent, uint64_t now_ms) {
  if (!is_open()) return false;
  // A page is in one piece: what is left before the file's end is left out.
  uint64_t position = head_position_;
  const uint64_t before_end = capacity_ - position % capacity_;
  if (sent.size() > before_end) position += before_end;
  const uint64_t oldest = is_empty() ? position : entry_at(tail_).position;
  const bool has_room = head_ - tail_ < entry_count_ && position + sent.size() - oldest <= limit_;
  if (!has_room || !file_.is_ours() || !write(sent, position)) {
    if (full_since_ms_ == 0) full_since_ms_ = now_ms;
    retry_at_ms_ = has_room ? now_ms + kSpoolRetryMs : 0;
    return false;
  }
  full_since_ms_ = retry_at_ms_ = 0;
  Entry& added = entry_at(head_);
  added = {page, position, static_cast<uint32_t>(sent.size()), 0, true};
  const auto ref = static_cast<SpoolRef>(head_ % entry_count_ + 1);
  ++head_;
  head_position_ = position + sent.size();
  bytes_ += sent.size();
  if (chain.last != 0) entry(chain.last).next = ref;
  chain.last = ref;
  if (chain.first == 0) chain.first = ref;
  chain.end_seq = end_seq(added);
  return true;
}

bool Spool::read(SpoolRef ref, uint8_t* out) const {
  const Entry& wanted = entry(ref);
  auto at = static_cast<off_t>(wanted.position % capacity_);
  uint32_t left = wanted.bytes;
  if (!file_.is_ours()) return false;
  while (left != 0) {
    const ssize_t got = sys::pread(file_.fd(), out, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    at += got;
    left -= static_cast<uint32_t>(got);
  }
  return true;
}

void Spool::rewind(SpoolChain& chain, uint64_t next_seq) const {
  chain.send = chain.first;
  while (chain.send != 0 && end_seq(entry(chain.send)) <= next_seq) {
    chain.send = entry(chain.send).next;
  }
}

// Pages are given back in any order, their room in the order in which they came.
void Spool::give_back(Entry& entry) {
  entry.is_held = false;
  bytes_ -= entry.bytes;
  while (tail_ != head_ && !entry_at(tail_).is_held) ++tail_;
  full_since_ms_ = 0;
  if (!is_empty()) return;
  head_position_ = 0;
  // The storage is the device's again; if that fails, it is used once more.
  if (file_.is_ours()) (void)sys::ftruncate(file_.fd(), 0);
}

void Spool::give_back_first(SpoolChain& chain) {
  Entry& oldest = entry(chain.first);
  if (chain.send == chain.first) chain.send = oldest.next;
  chain.first = oldest.next;
  if (chain.first == 0) chain.last = 0;
  give_back(oldest);
}

void Spool::acknowledge(SpoolChain& chain, uint64_t next_seq) {
  while (chain.first != 0 && end_seq(entry(chain.first)) <= next_seq) give_back_first(chain);
}

void Spool::release(SpoolChain& chain) {
  acknowledge(chain, UINT64_MAX);
  chain = {};
}

}  // namespace collect::agent
