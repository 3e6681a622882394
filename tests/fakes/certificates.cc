#include "tests/fakes/certificates.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>

namespace collect::fakes {
namespace {

struct Free {
  void operator()(X509* made) const { X509_free(made); }
  void operator()(EVP_PKEY* made) const { EVP_PKEY_free(made); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;
using File = std::unique_ptr<std::FILE, Free>;

void write_key(const EVP_PKEY* key, const std::string& path) {
  const File file(std::fopen(path.c_str(), "w"));
  EXPECT_TRUE(file && ::fchmod(fileno(file.get()), 0600) == 0 &&
              PEM_write_PrivateKey(file.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
}

void add_extension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  EXPECT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// An issuer of null: signed by itself.
Certificate make(const std::string& name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key,
                 std::chrono::minutes starts, std::chrono::minutes ends) {
  static std::atomic<long> serial{1};
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), std::chrono::seconds(starts).count());
  X509_gmtime_adj(X509_getm_notAfter(made.get()), std::chrono::seconds(ends).count());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* const signer = issuer == nullptr ? made.get() : issuer;
  X509_set_issuer_name(made.get(), X509_get_subject_name(signer));
  X509_set_pubkey(made.get(), key);
  if (issuer == nullptr) {
    add_extension(made.get(), signer, NID_basic_constraints, "critical,CA:TRUE");
  } else {
    add_extension(made.get(), signer, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  }
  EXPECT_NE(X509_sign(made.get(), issuer_key, EVP_sha256()), 0);
  return made;
}

}  // namespace

struct Authority::Keys {
  Key key;
  Certificate certificate;
};

Authority::Authority(std::string directory, const std::string& name)
    : directory_(std::move(directory)),
      certificate_(directory_ + "/" + name + ".pem"),
      keys_(std::make_unique<Keys>()) {
  keys_->key.reset(EVP_EC_gen("P-256"));
  keys_->certificate = make(name, keys_->key.get(), nullptr, keys_->key.get(),
                            std::chrono::minutes(-120), std::chrono::minutes(60));
  const File file(std::fopen(certificate_.c_str(), "w"));
  EXPECT_TRUE(file && PEM_write_X509(file.get(), keys_->certificate.get()) == 1);
}

Authority::~Authority() = default;

CertifiedKey Authority::issue(const std::string& name, std::chrono::minutes ends,
                              std::chrono::minutes starts) const {
  const CertifiedKey paths{directory_ + "/" + name + ".pem", directory_ + "/" + name + ".key"};
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate =
      make(name, key.get(), keys_->certificate.get(), keys_->key.get(), starts, ends);
  const File certificate_file(std::fopen(paths.certificate.c_str(), "w"));
  EXPECT_TRUE(certificate_file && PEM_write_X509(certificate_file.get(), certificate.get()) == 1);
  write_key(key.get(), paths.key);
  return paths;
}

void write_rsa_key(const std::string& path) {
  write_key(Key(EVP_RSA_gen(2048)).get(), path);
}

}  // namespace collect::fakes
