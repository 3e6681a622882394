/* A small agent in C: records the calls of a program that is compiled with -finstrument-functions.
 *
 *     cc -std=c11 -c -finstrument-functions program.c
 *     cc -std=c11 -o program agent.c program.o -pthread
 *     COLLECT_CONNECT=127.0.0.1:7710 ./program
 *
 * It is written from WIRE.md alone ("A minimal agent") and needs only the C library.
 * COLLECT_TOKEN_FILE names a file with a token. Without COLLECT_CONNECT nothing is recorded. Each
 * thread fills a page of events and sends it itself. Nothing is kept over a broken link.
 */
#define _GNU_SOURCE
#include <link.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- numbers of WIRE.md */

enum frame_type {
  HELLO = 2,
  WELCOME = 4,
  REFUSE = 5,
  CHALLENGE = 6,
  PROOF = 7,
  RECORDING_START = 16,
  MODULES = 17,
  STREAM_OPEN = 18,
  PAGE = 19,
  STREAM_CLOSE = 20,
  RECORDING_END = 22,
  ACK = 32,
  COMMAND = 33,
  COMMAND_RESULT = 34,
  CLOCK_PROBE = 35,
  CLOCK_REPLY = 36,
  HEARTBEAT = 37,
  BYE = 38
};
enum { CONTROL = 1, DATA = 2 };
enum { PROTOCOL_ERROR = 1, VERSION_ERROR = 2, TOKEN_ERROR = 3 };
enum { VERSION = 2, HEADER_BYTES = 24, PAGE_HEADER_BYTES = 72, MAX_BODY = 65536 };
enum { PAGE_EVENTS = 1024, EVENT_BYTES = 32, CALL = 1, RETURN = 2 };
enum { OPENING_MS = 10000, STORED_SECONDS = 30, BYE_MS = 1000 };

/* ---- little-endian bytes, CRC-32C, SHA-256, HMAC */

static void put(uint8_t* out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t* in, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | in[i];
  return value;
}

static uint32_t crc_table[256];

static void make_crc_table(void) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    crc_table[byte] = crc;
  }
}

static uint32_t crc32c(const uint8_t* bytes, size_t count) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < count; ++i) crc = crc_table[(crc ^ bytes[i]) & 0xFF] ^ crc >> 8;
  return crc ^ 0xFFFFFFFFu;
}

static const uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t value, int bits) {
  return value >> bits | value << (32 - bits);
}

static void sha256_block(uint32_t state[8], const uint8_t* block) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; ++i)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i)
    w[i] = w[i - 16] + w[i - 7] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) +
           (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; ++i) {
    const uint32_t one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof s[0]);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

/* Hashes at most MAX_HASHED bytes. */
enum { MAX_HASHED = 512, DIGEST = 32, BLOCK = 64 };

static void sha256(const uint8_t* bytes, size_t count, uint8_t digest[DIGEST]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t padded[MAX_HASHED + 2 * BLOCK] = {0};
  const size_t whole = (count + 9 + BLOCK - 1) / BLOCK * BLOCK;
  memcpy(padded, bytes, count);
  padded[count] = 0x80;
  for (int i = 0; i < 8; ++i)
    padded[whole - 1 - (size_t)i] = (uint8_t)((uint64_t)count * 8 >> (8 * i));
  for (size_t at = 0; at < whole; at += BLOCK) sha256_block(state, padded + at);
  for (int i = 0; i < 32; ++i) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static void hmac(const uint8_t* key, size_t key_bytes, const uint8_t* text, size_t count,
                 uint8_t digest[DIGEST]) {
  uint8_t block[BLOCK] = {0}, inner[MAX_HASHED], outer[BLOCK + DIGEST];
  if (key_bytes > BLOCK)
    sha256(key, key_bytes, block);
  else
    memcpy(block, key, key_bytes);
  for (int i = 0; i < BLOCK; ++i) {
    inner[i] = block[i] ^ 0x36;
    outer[i] = block[i] ^ 0x5c;
  }
  memcpy(inner + BLOCK, text, count);
  sha256(inner, BLOCK + count, outer + BLOCK);
  sha256(outer, sizeof outer, digest);
}

/* ---- messages of wire.proto, in Protobuf's encoding */

struct message {
  uint8_t bytes[2048];
  size_t size;
};

static void add_varint(struct message* to, uint64_t value) {
  for (; value > 0x7F; value >>= 7) to->bytes[to->size++] = (uint8_t)(value | 0x80);
  to->bytes[to->size++] = (uint8_t)value;
}

static void add(struct message* to, unsigned field, uint64_t value) {
  if (value == 0) return;
  add_varint(to, field << 3);
  add_varint(to, value);
}

static void add_bytes(struct message* to, unsigned field, const void* bytes, size_t count) {
  if (count == 0 || to->size + count + 8 > sizeof to->bytes) return;
  add_varint(to, field << 3 | 2);
  add_varint(to, count);
  memcpy(to->bytes + to->size, bytes, count);
  to->size += count;
}

/* Cut to the limit of the field. */
static void add_text(struct message* to, unsigned field, const char* text, size_t limit) {
  add_bytes(to, field, text, strnlen(text, limit));
}

struct field {
  uint64_t number;
  const uint8_t* bytes;
  size_t size;
};

/* The last value of a field, zero where there is none. False: this is no message. */
static bool find(const uint8_t* bytes, size_t count, unsigned wanted, struct field* found) {
  *found = (struct field){0};
  for (size_t at = 0; at < count;) {
    uint64_t numbers[2] = {0}; /* key; value or length */
    for (int i = 0; i < 2; ++i) {
      const unsigned kind = (unsigned)numbers[0] & 7;
      if (i == 1 && (kind == 1 || kind == 5)) {
        numbers[1] = kind == 1 ? 8 : 4;
        break;
      }
      for (int shift = 0;; shift += 7) {
        if (at == count || shift > 63) return false;
        numbers[i] |= (uint64_t)(bytes[at] & 0x7F) << shift;
        if (bytes[at++] < 0x80) break;
      }
    }
    const unsigned kind = (unsigned)numbers[0] & 7;
    struct field one = {.number = numbers[1]};
    if (kind != 0) {
      if (kind == 3 || kind == 4 || kind > 5 || numbers[1] > count - at) return false;
      one = (struct field){0, bytes + at, (size_t)numbers[1]};
      at += one.size;
    }
    if (numbers[0] >> 3 == wanted) *found = one;
  }
  return true;
}

static uint64_t number_of(const uint8_t* bytes, size_t count, unsigned wanted) {
  struct field found;
  return find(bytes, count, wanted, &found) ? found.number : 0;
}

/* ---- one of the two connections */

struct link {
  int fd;
  unsigned channel;
  pthread_mutex_t sending;
  uint8_t buffer[HEADER_BYTES + MAX_BODY];
  size_t filled;
  uint8_t nonce[16];
};

static struct link control = {.fd = -1, .channel = CONTROL, .sending = PTHREAD_MUTEX_INITIALIZER};
static struct link data = {.fd = -1, .channel = DATA, .sending = PTHREAD_MUTEX_INITIALIZER};
static atomic_bool is_over;   /* the link has ended */
static atomic_bool is_stored; /* the recording's end is acknowledged */
static uint8_t process_id[16], resume_key[16], token[256];
static size_t resume_key_bytes, token_bytes;

static uint64_t now_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void) {
  return now_of(CLOCK_BOOTTIME);
}

static void send_all(int fd, const uint8_t* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return; /* who reads will see the end */
    bytes += sent;
    count -= (size_t)sent;
  }
}

/* `checked` bytes of the body are what the checksum covers: all, or the header of a page. */
static void send_frame(struct link* link, enum frame_type type, const uint8_t* body, size_t count,
                       size_t checked) {
  uint8_t head[HEADER_BYTES] = {'C', 'L', 'W', '1'};
  put(head + 4, type, 2);
  put(head + 8, count, 4);
  put(head + 12, crc32c(body, checked), 4);
  put(head + 20, crc32c(head, 20), 4);
  pthread_mutex_lock(&link->sending);
  send_all(link->fd, head, sizeof head);
  send_all(link->fd, body, count);
  pthread_mutex_unlock(&link->sending);
}

static void send_message(struct link* link, enum frame_type type, const struct message* message) {
  send_frame(link, type, message->bytes, message->size, message->size);
}

static void close_both(void) {
  atomic_store(&is_over, true);
  if (control.fd >= 0) shutdown(control.fd, SHUT_RDWR);
  if (data.fd >= 0) shutdown(data.fd, SHUT_RDWR);
}

/* Refuse is the last frame. */
static void refuse(struct link* link, unsigned code, const char* reason) {
  struct message message = {.size = 0};
  uint8_t rest[4096];
  fprintf(stderr, "agent: %s\n", reason);
  add(&message, 1, code);
  add_text(&message, 2, reason, 255);
  add(&message, 3, 1);
  send_message(link, REFUSE, &message);
  shutdown(link->fd, SHUT_WR);
  struct pollfd waited = {.fd = link->fd, .events = POLLIN};
  while (poll(&waited, 1, BYE_MS) > 0 && recv(link->fd, rest, sizeof rest, 0) > 0) {
    /* what is not read would take the Refuse away */
  }
  close_both();
}

/* Waits until there is something to read, and reads it. False: the end, or nothing came. */
static bool fill(struct link* link, int timeout_ms) {
  struct pollfd waited = {.fd = link->fd, .events = POLLIN};
  if (poll(&waited, 1, timeout_ms) <= 0) return false;
  const ssize_t got =
      recv(link->fd, link->buffer + link->filled, sizeof link->buffer - link->filled, 0);
  if (got <= 0) return false;
  link->filled += (size_t)got;
  return true;
}

/* Whether a whole frame is at the front of the buffer. A wrong one is refused. */
static bool has_frame(struct link* link) {
  const uint8_t* head = link->buffer;
  if (atomic_load(&is_over) || link->filled < HEADER_BYTES) return false;
  const size_t size = get(head + 8, 4);
  if (memcmp(head, "CLW1", 4) != 0 || get(head + 20, 4) != crc32c(head, 20) || size > MAX_BODY) {
    refuse(link, PROTOCOL_ERROR, "the header of a frame is wrong");
    return false;
  }
  if (link->filled < HEADER_BYTES + size) return false;
  if (get(head + 12, 4) == crc32c(head + HEADER_BYTES, size)) return true;
  refuse(link, PROTOCOL_ERROR, "a frame is damaged");
  return false;
}

static void drop_frame(struct link* link) {
  const size_t whole = HEADER_BYTES + get(link->buffer + 8, 4);
  link->filled -= whole;
  memmove(link->buffer, link->buffer + whole, link->filled);
}

/* ---- opening (WIRE.md "Opening a connection", "Proofs") */

static void add_proof(struct message* to, unsigned field, const char* label, const uint8_t* secret,
                      size_t secret_bytes, const struct link* link, const uint8_t* nonce) {
  uint8_t text[128], digest[DIGEST];
  size_t size = strlen(label) + 1;
  if (secret_bytes == 0) return;
  memcpy(text, label, size);
  text[size++] = 0; /* the agent connected */
  text[size++] = (uint8_t)link->channel;
  memcpy(text + size, process_id, 16);
  memcpy(text + size + 16, link->nonce, 16);
  memcpy(text + size + 32, nonce, 16);
  hmac(secret, secret_bytes, text, size + 48, digest);
  add_bytes(to, field, digest, DIGEST);
}

/* Waits for a frame of this type. False: the link is over. */
static bool expect(struct link* link, enum frame_type wanted) {
  while (!atomic_load(&is_over)) {
    if (!has_frame(link)) {
      if (!atomic_load(&is_over) && !fill(link, OPENING_MS)) close_both();
      continue;
    }
    const uint64_t type = get(link->buffer + 4, 2);
    if (type == wanted) return true;
    if (type == REFUSE) {
      struct field reason;
      find(link->buffer + HEADER_BYTES, get(link->buffer + 8, 4), 2, &reason);
      fprintf(stderr, "agent: refused: %.*s\n", (int)reason.size, (const char*)reason.bytes);
      close_both();
    }
    drop_frame(link);
  }
  return false;
}

static int connected(const char* address) {
  char host[256];
  const char* colon = strrchr(address, ':');
  struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  if (colon == NULL || (size_t)(colon - address) >= sizeof host) return -1;
  memcpy(host, address, (size_t)(colon - address));
  host[colon - address] = 0;
  if (getaddrinfo(host, colon + 1, &wanted, &list) != 0) return -1;
  int fd = -1;
  for (struct addrinfo* at = list; at != NULL && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static void add_hello(struct message* to, const struct link* link) {
  char host[64] = "", path[512] = "";
  gethostname(host, sizeof host - 1);
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) path[0] = 0;
  const char* slash = strrchr(path, '/');
  add(to, 1, link->channel);
  add(to, 2, VERSION);
  add(to, 3, VERSION);
  add_bytes(to, 5, process_id, sizeof process_id);
  add(to, 7, 4); /* Linux */
#if defined(__aarch64__)
  add(to, 8, 2);
#else
  add(to, 8, 1);
#endif
  add(to, 9, (uint64_t)getpid());
  add(to, 10, (uint64_t)getppid());
  add_text(to, 11, slash == NULL ? path : slash + 1, 63);
  add_text(to, 12, host, 63);
  add(to, 16, 3); /* CLOCK_BOOTTIME */
  add(to, 17, 2); /* version of the records */
  add_text(to, 18, "c 1", 31);
  add_text(to, 24, path, 511);
  add_bytes(to, 25, link->nonce, sizeof link->nonce);
}

/* One channel from its Hello to its Welcome. */
static bool open_link(struct link* link, const char* address) {
  struct message hello = {.size = 0}, proof = {.size = 0}, wanted = {.size = 0};
  struct field nonce, given;
  link->fd = connected(address);
  if (link->fd < 0 || getrandom(link->nonce, sizeof link->nonce, 0) != sizeof link->nonce) {
    fprintf(stderr, "agent: no collector answers at %s\n", address);
    return false;
  }
  add_hello(&hello, link);
  send_message(link, HELLO, &hello);
  if (!expect(link, CHALLENGE)) return false;
  const uint8_t* body = link->buffer + HEADER_BYTES;
  const size_t size = get(link->buffer + 8, 4);
  if (!find(body, size, 1, &nonce) || nonce.size != 16 || !find(body, size, 2, &given)) {
    refuse(link, PROTOCOL_ERROR, "the Challenge is wrong");
    return false;
  }
  add_proof(&wanted, 1, "collect-wire collector token", token, token_bytes, link, nonce.bytes);
  uint8_t differs = given.size != DIGEST;
  for (size_t i = 0; !differs && i < DIGEST && token_bytes != 0; ++i) {
    differs |= given.bytes[i] ^ wanted.bytes[2 + i]; /* behind key and length */
  }
  if (token_bytes != 0 && differs) {
    refuse(link, TOKEN_ERROR, "the collector does not know the token");
    return false;
  }
  add_proof(&proof, 1, "collect-wire agent token", token, token_bytes, link, nonce.bytes);
  add_proof(&proof, 2, "collect-wire agent resume", resume_key, resume_key_bytes, link,
            nonce.bytes);
  drop_frame(link);
  send_message(link, PROOF, &proof);
  return expect(link, WELCOME);
}

/* ---- what the collector says while the link lasts */

static int heartbeat_ms = 1000;

static void send_heartbeat(void) {
  struct message beat = {.size = 0};
  add(&beat, 8, 1);  /* it records */
  add(&beat, 11, 1); /* recording 1 */
  send_message(&control, HEARTBEAT, &beat);
}

static void on_frame(struct link* link, uint64_t type, const uint8_t* body, size_t size) {
  struct message answer = {.size = 0};
  const uint64_t arrived = now_ns();
  struct field reason;
  if (type == REFUSE) {
    find(body, size, 2, &reason);
    fprintf(stderr, "agent: refused: %.*s\n", (int)reason.size, (const char*)reason.bytes);
    close_both();
  } else if (link == &control && type == CLOCK_PROBE) {
    for (unsigned i = 1; i <= 3; ++i) add(&answer, i, number_of(body, size, i));
    add(&answer, 4, arrived);
    add(&answer, 5, now_ns());
    send_message(link, CLOCK_REPLY, &answer);
  } else if (link == &control && type == COMMAND) {
    add(&answer, 1, number_of(body, size, 1));
    add_text(&answer, 3, "this agent records from beginning to end", 127);
    add(&answer, 4, arrived);
    send_message(link, COMMAND_RESULT, &answer);
  } else if (link == &control && type == ACK) {
    if (number_of(body, size, 2) == 1) atomic_store(&is_stored, true);
  } else if (link == &control && type == BYE) {
    close_both();
  } else if ((type >= 1 && type <= 7) || (type >= 16 && type <= 23) || (type >= 32 && type <= 40)) {
    if (link != &control || type != HEARTBEAT) {
      refuse(link, PROTOCOL_ERROR, "a frame does not belong here");
    }
  }
}

/* Takes what has come. */
static void serve(struct link* link) {
  while (has_frame(link)) {
    on_frame(link, get(link->buffer + 4, 2), link->buffer + HEADER_BYTES, get(link->buffer + 8, 4));
    drop_frame(link);
  }
}

/* The thread that answers. Three silent intervals end the link. */
static void* serve_both(void* unused) {
  uint64_t heard = now_ns(), beat = heard;
  const uint64_t interval = (uint64_t)heartbeat_ms * 1000000u;
  serve(&control); /* what came together with the Welcome */
  serve(&data);
  while (!atomic_load(&is_over)) {
    struct pollfd waited[2] = {{.fd = control.fd, .events = POLLIN},
                               {.fd = data.fd, .events = POLLIN}};
    poll(waited, 2, heartbeat_ms / 4);
    if (waited[0].revents != 0) {
      heard = now_ns();
      if (!fill(&control, 0)) close_both();
      serve(&control);
    }
    if (waited[1].revents != 0) {
      if (!fill(&data, 0)) close_both();
      serve(&data);
    }
    if (now_ns() - heard > 3 * interval) close_both();
    if (now_ns() - beat > interval / 2 && !atomic_load(&is_over)) {
      beat = now_ns();
      send_heartbeat();
    }
  }
  return unused;
}

/* ---- threads and their events (WIRE.md "Metadata before records", "Page header") */

struct stream {
  uint32_t id;
  uint32_t count; /* of events in the page */
  uint64_t first_seq;
  uint64_t last_ns;
  uint64_t first_ns; /* of the page */
  bool is_closed;
  struct stream* next;
  uint8_t page[PAGE_HEADER_BYTES + PAGE_EVENTS * EVENT_BYTES];
};

static atomic_bool is_recording;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct stream* streams;
static pthread_key_t thread_end;
static _Thread_local struct stream* own_stream;
static uintptr_t program_base, program_end; /* module 0 */
static uint8_t build_id[64];
static size_t build_id_bytes;

static void flush(struct stream* stream) {
  uint8_t* head = stream->page;
  const size_t size = (size_t)stream->count * EVENT_BYTES;
  if (stream->count == 0) return;
  memset(head, 0, PAGE_HEADER_BYTES);
  put(head, stream->id, 4);
  put(head + 8, stream->first_seq, 8);
  put(head + 16, stream->count, 4);
  put(head + 20, size, 4);
  put(head + 24, crc32c(head + PAGE_HEADER_BYTES, size), 4);
  put(head + 56, stream->first_ns, 8);
  put(head + 64, stream->last_ns, 8);
  send_frame(&data, PAGE, head, PAGE_HEADER_BYTES + size, PAGE_HEADER_BYTES);
  stream->first_seq += stream->count;
  stream->count = 0;
}

static void close_stream(void* of_thread) {
  struct stream* stream = of_thread;
  struct message message = {.size = 0};
  if (stream->is_closed) return;
  stream->is_closed = true;
  flush(stream);
  add(&message, 1, stream->id);
  add(&message, 3, now_ns());
  add(&message, 4, stream->first_seq);
  send_message(&data, STREAM_CLOSE, &message);
}

static struct stream* opened_stream(void) {
  struct message message = {.size = 0};
  struct stream* stream = calloc(1, sizeof *stream);
  char name[32] = "";
  if (stream == NULL) return NULL;
  pthread_getname_np(pthread_self(), name, sizeof name);
  pthread_mutex_lock(&listing);
  stream->id = streams == NULL ? 1 : streams->id + 1;
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&listing);
  add(&message, 1, 1); /* recording */
  add(&message, 2, stream->id);
  add(&message, 3, (uint64_t)syscall(SYS_gettid));
  add_text(&message, 4, name, 31);
  add(&message, 5, now_ns());
  send_message(&data, STREAM_OPEN, &message);
  pthread_setspecific(thread_end, stream);
  return own_stream = stream;
}

static void record(void* function, int kind) {
  const uintptr_t address = (uintptr_t)function;
  struct stream* stream = own_stream;
  if (!atomic_load_explicit(&is_recording, memory_order_relaxed)) return;
  if (stream == NULL) stream = opened_stream();
  if (stream == NULL || stream->is_closed) return;
  const bool is_ours = address >= program_base && address < program_end;
  const uint64_t id =
      is_ours ? address - program_base : 0xFFFFFFFFull << 32 | (address & 0xFFFFFFFF);
  const uint64_t now = now_ns();
  uint8_t* event = stream->page + PAGE_HEADER_BYTES + (size_t)stream->count * EVENT_BYTES;
  if (now > stream->last_ns) stream->last_ns = now;
  if (stream->count == 0) stream->first_ns = stream->last_ns;
  memset(event, 0, EVENT_BYTES);
  put(event, stream->last_ns, 8);
  put(event + 8, id, 8);
  put(event + 16, UINT64_MAX, 8); /* no detail */
  event[24] = (uint8_t)kind;
  if (++stream->count == PAGE_EVENTS) flush(stream);
}

void __cyg_profile_func_enter(void* function, void* caller);
void __cyg_profile_func_exit(void* function, void* caller);

void __cyg_profile_func_enter(void* function, void* caller) {
  (void)caller;
  record(function, CALL);
}

void __cyg_profile_func_exit(void* function, void* caller) {
  (void)caller;
  record(function, RETURN);
}

/* ---- the recording, from the start of the program to its end */

/* The linker's note of 4 bytes "GNU", type 3; notes are padded to 4 bytes. */
static void find_build_id(const uint8_t* note, size_t count) {
  while (count >= 16) {
    const size_t name = get(note, 4), size = get(note + 4, 4);
    const size_t whole = 12 + (name + 3) / 4 * 4 + (size + 3) / 4 * 4;
    if (name > count || size > count || whole > count) return;
    if (get(note + 8, 4) == 3 && name == 4 && size <= sizeof build_id) {
      memcpy(build_id, note + 16, build_id_bytes = size);
    }
    note += whole;
    count -= whole;
  }
}

static int look_at_program(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  program_base = object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const uintptr_t end =
        object->dlpi_addr + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
    if (object->dlpi_phdr[i].p_type == PT_LOAD && end > program_end) program_end = end;
    if (object->dlpi_phdr[i].p_type == PT_NOTE) {
      find_build_id((const uint8_t*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                    object->dlpi_phdr[i].p_memsz);
    }
  }
  return 1; /* the program is the first object */
}

static void add_module(struct message* to) {
  struct message module = {.size = 0};
  char path[512] = "";
  uint8_t base[8];
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) path[0] = 0;
  add_text(&module, 2, path, 511);
  add_bytes(&module, 3, build_id, build_id_bytes);
  put(base, program_base, sizeof base);
  add_varint(&module, 4 << 3 | 1); /* a fixed64 */
  memcpy(module.bytes + module.size, base, sizeof base);
  module.size += sizeof base;
  add(&module, 5, program_end - program_base);
  add(&module, 6, now_ns());
  add_bytes(to, 1, module.bytes, module.size);
}

static bool read_token(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file != NULL) {
    token_bytes = fread(token, 1, sizeof token, file);
    fclose(file);
  }
  while (token_bytes > 0 && (token[token_bytes - 1] == '\n' || token[token_bytes - 1] == '\r')) {
    --token_bytes;
  }
  if (token_bytes == 0) fprintf(stderr, "agent: %s: no token can be read\n", path);
  return token_bytes != 0;
}

static bool open_both(const char* address) {
  struct field key;
  if (!open_link(&control, address)) return false;
  const uint8_t* welcome = control.buffer + HEADER_BYTES;
  const size_t size = get(control.buffer + 8, 4);
  if (find(welcome, size, 7, &key) && key.size == sizeof resume_key) {
    memcpy(resume_key, key.bytes, resume_key_bytes = key.size);
  }
  if (number_of(welcome, size, 4) != 0) heartbeat_ms = (int)number_of(welcome, size, 4);
  if (number_of(welcome, size, 2) != 0) {
    refuse(&control, VERSION_ERROR, "the Welcome names features that were not offered");
    return false;
  }
  drop_frame(&control);
  if (!open_link(&data, address)) return false;
  drop_frame(&data);
  return true;
}

__attribute__((constructor)) static void begin(void) {
  const char* address = getenv("COLLECT_CONNECT");
  const char* token_file = getenv("COLLECT_TOKEN_FILE");
  struct message start = {.size = 0}, modules = {.size = 0};
  pthread_t thread;
  if (address == NULL || (token_file != NULL && !read_token(token_file))) return;
  make_crc_table();
  if (getrandom(process_id, sizeof process_id, 0) != sizeof process_id || !open_both(address))
    return;
  dl_iterate_phdr(look_at_program, NULL);
  add(&start, 1, 1);
  add(&start, 2, now_ns());
  add(&start, 3, now_of(CLOCK_REALTIME));
  add(&start, 4, 2);
  send_message(&data, RECORDING_START, &start);
  add_module(&modules);
  send_message(&data, MODULES, &modules);
  if (pthread_key_create(&thread_end, close_stream) != 0 ||
      pthread_create(&thread, NULL, serve_both, NULL) != 0) {
    close_both();
    return;
  }
  pthread_detach(thread);
  atomic_store(&is_recording, true);
}

static bool wait_for(const atomic_bool* done, uint64_t bound_ns) {
  const uint64_t until = now_ns() + bound_ns;
  while (!atomic_load(done) && !atomic_load(&is_over) && now_ns() < until) poll(NULL, 0, 1);
  return atomic_load(done);
}

/* A thread that still runs may record no more: its page is sent here. */
__attribute__((destructor)) static void end(void) {
  struct message message = {.size = 0}, bye = {.size = 0};
  if (!atomic_exchange(&is_recording, false)) return;
  for (struct stream* at = streams; at != NULL; at = at->next) close_stream(at);
  add(&message, 1, 1);
  add(&message, 2, now_ns());
  add_text(&message, 3, "exit", 31);
  send_message(&data, RECORDING_END, &message);
  if (!wait_for(&is_stored, STORED_SECONDS * 1000000000ull)) {
    fprintf(stderr, "agent: the collector did not store everything\n");
  }
  add_text(&bye, 1, "exit", 63);
  send_message(&control, BYE, &bye);
  wait_for(&is_over, BYE_MS * 1000000ull); /* the collector closes control when it has read that */
  close_both();
}
