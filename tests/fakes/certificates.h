// Certificates for tests, made while they run and valid for minutes: authorities, and what they
// sign. OpenSSL's own API, so that no program has to be there.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace collect::fakes {

// Paths of PEM files.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

class Authority {
 public:
  // Its certificate is `directory`/`name`.pem.
  Authority(std::string directory, const std::string& name);
  ~Authority();

  const std::string& certificate() const { return certificate_; }
  // Signs a new key for 127.0.0.1 and localhost, good for both sides of TLS; into
  // `directory`/`name`.pem and .key. `ends` is counted from now: negative for one that has expired.
  // So is `starts`: positive for one that is not valid yet.
  CertifiedKey issue(const std::string& name, std::chrono::minutes ends = std::chrono::minutes(60),
                     std::chrono::minutes starts = std::chrono::minutes(-120)) const;

 private:
  struct Keys;
  const std::string directory_;
  const std::string certificate_;
  const std::unique_ptr<Keys> keys_;
};

// A new RSA key into `path`: another kind than those of an Authority.
void write_rsa_key(const std::string& path);

}  // namespace collect::fakes
