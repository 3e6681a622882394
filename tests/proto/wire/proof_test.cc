#include "proto/wire/proof.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/handshake.h"

namespace collect::wire {
namespace {

Bytes bytes_of(const std::string& text) {
  return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string hex(const uint8_t* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0xF];
  }
  return text;
}

std::string sha256(const std::string& text) {
  Sha256 hash;
  hash.update(bytes_of(text));
  uint8_t digest[Sha256::kDigestBytes];
  hash.finish(digest);
  return hex(digest, sizeof digest);
}

std::string hmac(const std::string& key, const std::string& text) {
  uint8_t digest[Sha256::kDigestBytes];
  hmac_sha256(bytes_of(key), bytes_of(text), digest);
  return hex(digest, sizeof digest);
}

std::string hmac_by_openssl(const std::string& key, const std::string& text) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text).data(), text.size(),
       digest, &bytes);
  return hex(digest, bytes);
}

TEST(Sha256Test, ExamplesOfFips180) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HmacTest, ExamplesOfRfc4231) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacTest, OpensslComputesTheSame) {
  std::mt19937 random(7);
  const auto bytes = [&](size_t count) {
    std::string text(count, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  for (size_t length = 0; length < 300; ++length) {
    const std::string key = bytes(length);
    const std::string text = bytes(random() % 300);
    EXPECT_EQ(hmac(key, text), hmac_by_openssl(key, text)) << length;
  }
}

// The page's example: WIRE.md "Proofs".
ProofContext example() {
  ProofContext context;
  context.channel = 1;
  for (uint8_t i = 0; i < 16; ++i) {
    context.process_id[i] = static_cast<uint8_t>(0x10 + i);
    context.agent_nonce[i] = static_cast<uint8_t>(0x20 + i);
    context.collector_nonce[i] = static_cast<uint8_t>(0x30 + i);
  }
  return context;
}

std::string proof(ProofKind kind, const std::string& secret, const ProofContext& context) {
  uint8_t bytes[kProofBytes];
  make_proof(kind, bytes_of(secret), context, bytes);
  return {reinterpret_cast<const char*>(bytes), sizeof bytes};
}

TEST(ProofTest, ExampleOfTheDocument) {
  std::ifstream file(COLLECT_WIRE_DOCUMENT);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string key;
  for (char c = 0x40; c < 0x50; ++c) key += c;
  for (const auto& [kind, secret] :
       {std::pair(ProofKind::kCollectorToken, std::string("correct horse")),
        {ProofKind::kAgentToken, "correct horse"},
        {ProofKind::kAgentResume, key}}) {
    const std::string made = proof(kind, secret, example());
    EXPECT_NE(page.find(hex(reinterpret_cast<const uint8_t*>(made.data()), made.size())),
              std::string::npos)
        << static_cast<int>(kind);
  }
}

TEST(ProofTest, MatchesProofsMadeFromTheDocument) {
  const ProofContext context = example();
  Hello hello;
  hello.set_channel(CHANNEL_CONTROL);
  hello.set_process_id(context.process_id, 16);
  hello.set_nonce(context.agent_nonce, 16);
  const std::string nonce(reinterpret_cast<const char*>(context.collector_nonce), 16);
  EXPECT_EQ(proof(ProofKind::kCollectorToken, "t", context),
            fakes::proof_of("collect-wire collector token", "t", hello, nonce, false));
  EXPECT_EQ(proof(ProofKind::kAgentToken, "t", context),
            fakes::proof_of("collect-wire agent token", "t", hello, nonce, false));
  EXPECT_EQ(proof(ProofKind::kAgentResume, "t", context),
            fakes::proof_of("collect-wire agent resume", "t", hello, nonce, false));
}

// What was said on one connection, in one direction, by one side, holds nowhere else.
TEST(ProofTest, EveryPartOfTheContextCounts) {
  std::vector<ProofContext> contexts(6, example());
  contexts[1].dialled = true;
  contexts[2].channel = 2;
  contexts[3].process_id[15] ^= 1;
  contexts[4].agent_nonce[0] ^= 1;
  contexts[5].collector_nonce[7] ^= 1;
  std::vector<std::string> proofs;
  for (const ProofContext& context : contexts) {
    for (const ProofKind kind :
         {ProofKind::kCollectorToken, ProofKind::kAgentToken, ProofKind::kAgentResume}) {
      for (const char* secret : {"one", "two"}) proofs.push_back(proof(kind, secret, context));
    }
  }
  const size_t made = proofs.size();
  std::sort(proofs.begin(), proofs.end());
  proofs.erase(std::unique(proofs.begin(), proofs.end()), proofs.end());
  EXPECT_EQ(proofs.size(), made);
}

TEST(ProofTest, OnlyTheWholeProofHolds) {
  const ProofContext context = example();
  const std::string right = proof(ProofKind::kAgentToken, "token", context);
  const auto holds = [&](const std::string& given) {
    return check_proof(ProofKind::kAgentToken, bytes_of("token"), context, bytes_of(given));
  };
  EXPECT_TRUE(holds(right));
  EXPECT_FALSE(holds(""));
  EXPECT_FALSE(holds(right.substr(0, 31)));
  EXPECT_FALSE(holds(right + right));
  for (size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    EXPECT_FALSE(holds(wrong)) << at;
  }
}

}  // namespace
}  // namespace collect::wire
