#include "src/bootstrap/handshake.h"

#include <algorithm>

namespace catenary {
namespace {

// The digit is the version of the handshake and of the frames that follow it.
std::string_view magic(Side speaker) {
  return speaker == Side::kInitiator ? "ctnry-I2" : "ctnry-A2";
}

constexpr std::size_t kSealedBytes = sizeof(Nonce) / 2;

Mac seal_of(ByteView sealed, const Key& key, std::string_view purpose) {
  return keyed_mac(key, {bytes_of("catenary seal"), bytes_of(purpose), sealed});
}

}  // namespace

Nonce sealed_nonce(const Key& key, std::string_view purpose) {
  Nonce nonce;
  const ByteSpan sealed = ByteSpan(nonce).first(kSealedBytes);
  fill_random(sealed);
  const Mac seal = seal_of(sealed, key, purpose);
  std::copy_n(seal.begin(), nonce.size() - kSealedBytes, nonce.begin() + kSealedBytes);
  return nonce;
}

bool is_sealed(const Nonce& nonce, const Key& key, std::string_view purpose) {
  const ByteView seal = ByteView(nonce).subspan(kSealedBytes);
  const Mac expected = seal_of(ByteView(nonce).first(kSealedBytes), key, purpose);
  return equal_secrets(seal, ByteView(expected).first(seal.size()));
}

Greeting make_greeting(Side speaker, const Nonce& nonce) {
  Greeting greeting;
  const ByteView head = bytes_of(magic(speaker));
  std::ranges::copy(nonce, std::ranges::copy(head, greeting.begin()).out);
  return greeting;
}

std::optional<Nonce> parse_greeting(Side speaker, ByteView bytes) {
  const ByteView head = bytes_of(magic(speaker));
  Nonce nonce;
  if (bytes.size() != head.size() + nonce.size()) return std::nullopt;
  if (!std::ranges::equal(bytes.first(head.size()), head)) return std::nullopt;
  std::ranges::copy(bytes.subspan(head.size()), nonce.begin());
  return nonce;
}

Mac Handshake::proof(Side prover) const {
  return keyed_mac(key, {bytes_of("catenary proof"), bytes_of(purpose), bytes_of(magic(prover)),
                         initiator, acceptor});
}

Key Handshake::session_key() const {
  return keyed_mac(key, {bytes_of("catenary session"), bytes_of(purpose), initiator, acceptor});
}

}  // namespace catenary
