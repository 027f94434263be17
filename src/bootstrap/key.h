// Keys: 32 secret bytes, and the few things that are done with them. Everything is libsodium's.
//
// Any thread; nothing waits, but the first call of a process may for the kernel's generator.
// Fails with Error(kSystem) if libsodium does not start, and not otherwise.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "src/base/types.h"

namespace catenary {

using Key = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

// Fills with bytes of the kernel's generator.
void fill_random(ByteSpan bytes);
Key random_key();

// A keyed MAC (BLAKE2b) of a list of parts. Each part's length counts too, so two different lists
// never give the same bytes.
Mac keyed_mac(const Key& key, std::initializer_list<ByteView> parts);

// An independent key for each label and context.
Key derive_key(const Key& key, std::string_view label, ByteView context = {});

// A key from something that may be long or short, such as a file's content.
Key key_from(ByteView content, std::string_view label);

// Whether both are the same, in a time that does not depend on where they differ.
bool equal_secrets(ByteView a, ByteView b);

inline ByteView bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace catenary
