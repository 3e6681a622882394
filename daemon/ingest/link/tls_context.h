// What TLS connections of agents are made of: the daemon's certificate and key, and who may answer
// for a client certificate. Version 1.3 only. The one place, beside ByteStream, that knows OpenSSL.
//
// Immutable and shared between threads; a reload makes a new one, and connections keep theirs.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "formats/core/result.h"

namespace collect::ingest {

struct SslDeleter {
  void operator()(SSL* session) const { SSL_free(session); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
// One connection's TLS. It is bound to a descriptor by number, and is as single-threaded as that.
using TlsSession = std::unique_ptr<SSL, SslDeleter>;

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // the daemon's, its chain behind it
  std::string key;
  std::string client_ca;  // empty: no client certificate is asked for
};

class TlsContext {
 public:
  // Reads and checks the files. Errors name the file, never what is in it; a key that others may
  // read, or a certificate that is out of date, is a warning in the log.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);

  bool asks_for_certificate() const { return asks_for_certificate_; }
  // For a connected, non-blocking descriptor, which it neither owns nor closes.
  TlsSession accept_on(int handle) const;

 private:
  std::unique_ptr<SSL_CTX, SslDeleter> context_;
  bool asks_for_certificate_ = false;
};

// A sentence when others than the owner may read the file; empty when not. The warning of a file
// with a key or a token in it.
std::string exposure_of(const std::string& path);

}  // namespace collect::ingest
