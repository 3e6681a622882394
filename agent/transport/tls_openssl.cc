// TLS by an OpenSSL that is linked into the agent and hidden in it: the program may have another
// one, or none.
//
// OpenSSL never waits and never writes to the socket: what it wants to send goes into a buffer of
// the session, and from there as the socket takes it. So nothing that was encrypted is ever asked
// for a second time, and the caller may come back with other bytes than those that found no room.
//
// Each call into OpenSSL holds the lock that a forking thread takes (descriptors_before_fork): a
// child never finds one of its locks, or its memory, in the middle of a change.
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/transport/descriptor.h"
#include "agent/transport/tls.h"
#include "agent/transport/tls_arena.h"

namespace collect::agent {

struct TlsSession {
  SSL* ssl;  // null: this place is free
  int fd;
  int socket_error;  // of the last read; -1: the stream ended
  const char* fault;
  size_t begin;  // what is not sent yet: out[begin, end)
  size_t end;
  uint8_t out[48 * 1024];  // a record, or the client's whole flight of a handshake
};

namespace {

constexpr size_t kRecordBytes = 16 * 1024;
constexpr size_t kMaxPemBytes = 256 * 1024;

TlsSession g_sessions[kMaxTlsSessions];
SSL_CTX* g_context = nullptr;  // made once; a forked child continues with it
char g_pem[kMaxPemBytes];

struct NotForking {
  NotForking() { descriptors_before_fork(); }
  ~NotForking() { descriptors_after_fork(); }
  NotForking(const NotForking&) = delete;
  NotForking& operator=(const NotForking&) = delete;
};

// ---- the session's transport

int bio_write(BIO* bio, const char* bytes, int count) {
  auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto size = static_cast<size_t>(count);
  if (session.begin == session.end) session.begin = session.end = 0;
  if (size > sizeof session.out - session.end) {
    BIO_set_retry_write(bio);
    return -1;
  }
  std::memcpy(session.out + session.end, bytes, size);
  session.end += size;
  return count;
}

int bio_read(BIO* bio, char* bytes, int count) {
  auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t got = sys::recv(session.fd, bytes, static_cast<size_t>(count), MSG_DONTWAIT);
  if (got > 0) return static_cast<int>(got);
  if (got == 0) {
    session.socket_error = -1;
    BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return 0;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
    BIO_set_retry_read(bio);
  } else {
    session.socket_error = errno;
  }
  return -1;
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* g_transport = nullptr;

// ---- files

void* allocate(size_t bytes, const char*, int) {
  return tls_allocate(bytes);
}
void* reallocate(void* block, size_t bytes, const char*, int) {
  if (bytes != 0) return tls_reallocate(block, bytes);
  tls_free(block);
  return nullptr;
}
void release(void* block, const char*, int) {
  tls_free(block);
}

// The file as a BIO over g_pem; null when it can't be read or is too long.
BIO* open_pem(const char* path) {
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  size_t used = 0;
  ssize_t got = 1;
  while (got > 0 && used < sizeof g_pem) {
    got = sys::read(fd, g_pem + used, sizeof g_pem - used);
    if (got > 0) used += static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) got = 1;
  }
  sys::close(fd);
  if (got != 0 || used == 0) return nullptr;
  return BIO_new_mem_buf(g_pem, static_cast<int>(used));
}

// A passphrase can't be asked for.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

bool load_ca(SSL_CTX* context, const char* path) {
  BIO* const pem = open_pem(path);
  if (pem == nullptr) return false;
  uint32_t count = 0;
  while (X509* const certificate = PEM_read_bio_X509(pem, nullptr, no_passphrase, nullptr)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1) ++count;
    X509_free(certificate);
  }
  BIO_free(pem);
  return count != 0;
}

bool load_certificate(SSL_CTX* context, const char* path) {
  BIO* const pem = open_pem(path);
  if (pem == nullptr) return false;
  X509* certificate = PEM_read_bio_X509_AUX(pem, nullptr, no_passphrase, nullptr);
  bool loaded = certificate != nullptr && SSL_CTX_use_certificate(context, certificate) == 1;
  X509_free(certificate);
  while (loaded) {
    certificate = PEM_read_bio_X509(pem, nullptr, no_passphrase, nullptr);
    if (certificate == nullptr) break;
    loaded = SSL_CTX_add0_chain_cert(context, certificate) == 1;
    if (!loaded) X509_free(certificate);
  }
  BIO_free(pem);
  return loaded;
}

bool load_key(SSL_CTX* context, const char* path) {
  BIO* const pem = open_pem(path);
  if (pem == nullptr) return false;
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(pem, nullptr, no_passphrase, nullptr);
  BIO_free(pem);
  OPENSSL_cleanse(g_pem, sizeof g_pem);
  const bool loaded = key != nullptr && SSL_CTX_use_PrivateKey(context, key) == 1;
  EVP_PKEY_free(key);
  return loaded;
}

bool set_host(SSL* ssl, const char* host) {
  uint8_t address[sizeof(in6_addr)];
  if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
  }
  return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

const char* begin_openssl() {
  static bool begun = false;
  if (begun) return nullptr;
  if (CRYPTO_set_mem_functions(allocate, reallocate, release) != 1) return "TLS has no memory";
  const uint64_t flags = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT;
  if (OPENSSL_init_ssl(flags, nullptr) != 1) return "TLS can't begin";
  // The first conversion of a time reads the time zone, which allocates: here, and not later.
  const time_t now = time(nullptr);
  tm parts{};
  (void)gmtime_r(&now, &parts);
  g_transport = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "session");
  if (g_transport == nullptr) return "TLS has no memory";
  BIO_meth_set_write(g_transport, bio_write);
  BIO_meth_set_read(g_transport, bio_read);
  BIO_meth_set_ctrl(g_transport, bio_control);
  BIO_meth_set_create(g_transport, bio_create);
  begun = true;
  return nullptr;
}

const char* load_files(SSL_CTX* context, const TlsFiles& files) {
  if (files.ca[0] == '\0')
    return "COLLECT_TLS_CA must name the CA certificate that signed the collector's";
  if (!load_ca(context, files.ca)) return "COLLECT_TLS_CA can't be read, or holds no certificate";
  if ((files.certificate[0] == '\0') != (files.key[0] == '\0')) {
    return "COLLECT_TLS_CERTIFICATE and COLLECT_TLS_KEY belong together";
  }
  if (files.certificate[0] == '\0') return nullptr;
  if (!load_certificate(context, files.certificate)) {
    return "COLLECT_TLS_CERTIFICATE can't be read, or holds no certificate";
  }
  if (!load_key(context, files.key)) {
    return "COLLECT_TLS_KEY can't be read, or is not the key of COLLECT_TLS_CERTIFICATE";
  }
  return nullptr;
}

const char* make_context(const TlsFiles& files) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return "TLS has no memory";
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const char* const error = load_files(context, files);
  if (error != nullptr) {
    SSL_CTX_free(context);
  } else {
    g_context = context;
  }
  return error;
}

// ---- moving bytes

// Sends what OpenSSL left in the buffer. kDone: all of it.
IoStatus flush_out(TlsSession& session) {
  while (session.begin != session.end) {
    const ssize_t sent = send(session.fd, session.out + session.begin, session.end - session.begin,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      session.begin += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      return IoStatus::kAgain;
    } else if (errno != EINTR) {
      return errno == EPIPE || errno == ECONNRESET ? IoStatus::kEnd : IoStatus::kError;
    }
  }
  return IoStatus::kDone;
}

IoStatus judge(TlsSession& session, int result) {
  switch (SSL_get_error(session.ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return IoStatus::kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return IoStatus::kEnd;
    default:
      break;
  }
  if (session.socket_error == -1 || session.socket_error == ECONNRESET) return IoStatus::kEnd;
  if (session.fault != nullptr) return IoStatus::kError;  // OpenSSL names the cause once
  const long verdict = SSL_get_verify_result(session.ssl);
  session.fault = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                                       : ERR_reason_error_string(ERR_peek_error());
  return IoStatus::kError;
}

// One call into OpenSSL, and then the sending of what it has written.
template <class Call>
IoStatus run(TlsSession& session, Call call) {
  IoStatus status = IoStatus::kDone;
  {
    const NotForking not_forking;
    ERR_clear_error();
    const int result = call(session.ssl);
    if (result != 1) status = judge(session, result);
  }
  const IoStatus flushed = flush_out(session);
  return status == IoStatus::kAgain && flushed != IoStatus::kDone ? flushed : status;
}

}  // namespace

const char* tls_prepare(const TlsFiles& files) {
  if (g_context != nullptr) return nullptr;
  const NotForking not_forking;
  const char* error = begin_openssl();
  if (error == nullptr) error = make_context(files);
  ERR_clear_error();
  OPENSSL_thread_stop();  // this thread is the program's: nothing of ours runs when it ends
  return error;
}

TlsSession* tls_open(int fd, const char* host) {
  const NotForking not_forking;
  for (TlsSession& session : g_sessions) {
    if (session.ssl != nullptr) continue;
    session.fd = fd;
    session.begin = session.end = 0;
    session.socket_error = 0;
    session.fault = nullptr;
    SSL* const ssl = SSL_new(g_context);
    BIO* const bio = ssl == nullptr ? nullptr : BIO_new(g_transport);
    if (bio == nullptr) {
      SSL_free(ssl);
      return nullptr;
    }
    BIO_set_data(bio, &session);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_connect_state(ssl);
    if (!set_host(ssl, host)) {
      SSL_free(ssl);
      return nullptr;
    }
    session.ssl = ssl;
    return &session;
  }
  return nullptr;
}

void tls_close(TlsSession* session) {
  const NotForking not_forking;
  SSL_free(session->ssl);
  session->ssl = nullptr;
}

IoResult tls_send(TlsSession* session, const iovec* parts, size_t count) {
  size_t moved = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto* const bytes = static_cast<const uint8_t*>(parts[i].iov_base);
    for (size_t at = 0; at < parts[i].iov_len;) {
      const IoStatus room = flush_out(*session);
      if (room == IoStatus::kAgain && moved != 0) return {IoStatus::kDone, moved};
      if (room != IoStatus::kDone) return {room};
      const size_t left = parts[i].iov_len - at;
      size_t taken = 0;
      const IoStatus status = run(*session, [&](SSL* ssl) {
        return SSL_write_ex(ssl, bytes + at, left < kRecordBytes ? left : kRecordBytes, &taken);
      });
      if (status == IoStatus::kAgain && moved != 0) return {IoStatus::kDone, moved};
      if (status != IoStatus::kDone) return {status};
      at += taken;
      moved += taken;
    }
  }
  return {IoStatus::kDone, moved};
}

IoResult tls_receive(TlsSession* session, uint8_t* out, size_t size) {
  size_t filled = 0;
  IoStatus status = flush_out(*session);
  if (status != IoStatus::kDone && status != IoStatus::kAgain) return {status};
  status = IoStatus::kDone;
  while (filled < size && status == IoStatus::kDone) {
    size_t got = 0;
    status = run(*session,
                 [&](SSL* ssl) { return SSL_read_ex(ssl, out + filled, size - filled, &got); });
    filled += got;
  }
  if (filled != 0) return {IoStatus::kDone, filled};
  return {status};
}

short tls_poll_events(const TlsSession* session, short events) {
  if (session->begin != session->end) return static_cast<short>(events | POLLOUT);
  // Before the end of the handshake the other side has the word.
  return SSL_is_init_finished(session->ssl) == 1 ? events : POLLIN;
}

const char* tls_fault(const TlsSession* session) {
  return session->fault;
}

}  // namespace collect::agent
