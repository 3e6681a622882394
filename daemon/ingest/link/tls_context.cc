#include "daemon/ingest/link/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509err.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

// A descriptor as OpenSSL's transport. Its own one would let a write to a connection that is gone
// raise SIGPIPE.
int handle_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

int finish(BIO* bio, ssize_t count, int retry) {
  BIO_clear_retry_flags(bio);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(count);
}

int bio_write(BIO* bio, const char* bytes, int count) {
  return finish(bio, ::send(handle_of(bio), bytes, static_cast<size_t>(count), MSG_NOSIGNAL),
                BIO_FLAGS_WRITE);
}

int bio_read(BIO* bio, char* bytes, int count) {
  const ssize_t got = ::recv(handle_of(bio), bytes, static_cast<size_t>(count), 0);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return finish(bio, got, BIO_FLAGS_READ);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

const BIO_METHOD* descriptor_bio() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "descriptor");
    COLLECT_CHECK(made != nullptr);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    BIO_meth_set_create(made, bio_create);
    return made;
  }();
  return method;
}

// A key that is locked by a passphrase is refused: without this OpenSSL would ask at the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

// What OpenSSL said first, as a sentence about the file: what it says last ("PEM lib") only names
// the part of it that gave up. The queue is empty afterwards.
Error file_error(const std::string& key, const std::string& path) {
  const unsigned long code = ERR_peek_error();
  const char* reason = ERR_reason_error_string(code);
  const bool is_system = ERR_SYSTEM_ERROR(code) != 0;
  const std::string why = is_system           ? errno_error(ERR_GET_REASON(code), "").message
                          : reason == nullptr ? "it can't be used"
                                              : reason;
  ERR_clear_error();
  return {Code::kInvalidArgument, fmt::format("{}: {}: {} (want PEM)", key, path, why)};
}

// OpenSSL says too little about a file that is not there.
Status check_readable(const std::string& key, const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    const Error error = errno_error(errno, path);
    return Error{error.code, fmt::format("{}: {}", key, error.message)};
  }
  return {};
}

void warn_of_age(const SSL_CTX* context, const std::string& path) {
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (certificate == nullptr) return;
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    spdlog::warn("tls_certificate: {} has expired: clients will refuse it", path);
  } else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    spdlog::warn("tls_certificate: {} is not valid yet: clients will refuse it", path);
  }
}

}  // namespace

std::string exposure_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0) return {};
  return path + " can be read by others than its owner; chmod 600 it";
}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  COLLECT_TRY(check_readable("tls_certificate", files.certificate));
  COLLECT_TRY(check_readable("tls_key", files.key));
  ERR_clear_error();
  auto made = std::make_shared<TlsContext>();
  made->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = made->context_.get();
  if (context == nullptr) return Error{Code::kIo, "OpenSSL can't be used"};
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1) {
    return Error{Code::kUnsupported, "this OpenSSL has no TLS 1.3"};
  }
  // No one resumes: each connection shows its certificate again, and to the newest settings.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);  // one system call for several records
  SSL_CTX_set_default_read_buffer_len(context, kTlsReadAheadBytes);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return file_error("tls_certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason != X509_R_KEY_VALUES_MISMATCH && reason != X509_R_KEY_TYPE_MISMATCH) {
      return file_error("tls_key", files.key);
    }
  }
  // A key of another kind than the certificate's is taken above; a key that was refused is none.
  if (SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument,
                 fmt::format("tls_key: {} is not the key of {}", files.key, files.certificate)};
  }
  if (!files.client_ca.empty()) {
    COLLECT_TRY(check_readable("tls_client_ca", files.client_ca));
    STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(files.client_ca.c_str());
    if (names == nullptr || SSL_CTX_load_verify_file(context, files.client_ca.c_str()) != 1) {
      sk_X509_NAME_pop_free(names, X509_NAME_free);
      return file_error("tls_client_ca", files.client_ca);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    made->asks_for_certificate_ = true;
  }
  warn_of_age(context, files.certificate);
  if (const std::string exposed = exposure_of(files.key); !exposed.empty()) {
    spdlog::warn("tls_key: {}", exposed);
  }
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsSession TlsContext::accept_on(int handle) const {
  TlsSession session(SSL_new(context_.get()));
  BIO* const bio = BIO_new(descriptor_bio());
  if (!session || bio == nullptr) {
    BIO_free(bio);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(handle)));
  SSL_set_bio(session.get(), bio, bio);
  SSL_set_accept_state(session.get());
  return session;
}

}  // namespace collect::ingest
