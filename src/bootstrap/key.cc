#include "src/bootstrap/key.h"

#include <sodium.h>

#include "src/base/error.h"

namespace catenary {
namespace {

void start_sodium() {
  static const bool started = ::sodium_init() >= 0;
  if (!started)
    throw_error(ErrorCode::kSystem, "libsodium does not start: no source of random bytes");
}

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// `key` may be null: a plain hash.
std::array<std::byte, 32> hash(const Key* key, std::initializer_list<ByteView> parts) {
  start_sodium();
  crypto_generichash_state state;
  std::array<std::byte, 32> result;
  ::crypto_generichash_init(&state, key != nullptr ? raw(key->data()) : nullptr,
                            key != nullptr ? key->size() : 0, result.size());
  for (const ByteView part : parts) {
    unsigned char prefix[8];
    for (unsigned i = 0; i < 8; ++i) {
      prefix[i] = static_cast<unsigned char>(std::uint64_t{part.size()} >> (8 * i));
    }
    ::crypto_generichash_update(&state, prefix, sizeof prefix);
    ::crypto_generichash_update(&state, raw(part.data()), part.size());
  }
  ::crypto_generichash_final(&state, raw(result.data()), result.size());
  ::sodium_memzero(&state, sizeof state);
  return result;
}

}  // namespace

void fill_random(ByteSpan bytes) {
  start_sodium();
  ::randombytes_buf(bytes.data(), bytes.size());
}

Key random_key() {
  Key key;
  fill_random(key);
  return key;
}

Mac keyed_mac(const Key& key, std::initializer_list<ByteView> parts) { return hash(&key, parts); }

Key derive_key(const Key& key, std::string_view label, ByteView context) {
  return hash(&key, {bytes_of("catenary key"), bytes_of(label), context});
}

Key key_from(ByteView content, std::string_view label) {
  return hash(nullptr, {bytes_of("catenary key"), bytes_of(label), content});
}

bool equal_secrets(ByteView a, ByteView b) {
  return a.size() == b.size() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace catenary
