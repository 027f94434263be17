// The handshake by which two ends of a stream prove to each other that they hold the same key.
//
//     initiator                             acceptor
//     greeting (magic, nonce)  ------->
//                              <-------     greeting (magic, nonce)
//     proof                    ------->
//                              <-------     proof
//
// The initiator proves first, so a stranger who connects learns nothing that depends on the key. A
// proof is a MAC over both nonces, the purpose and the side of who proves: it can be neither
// replayed nor reflected.
//
// The initiator's nonce is sealed besides: half of it is a MAC of the other half. So the first
// message tells an acceptor whether it comes from a holder of the key, or at worst repeats one that
// did, and strangers, who cannot make one, never take a place that a holder needs.
//
// Pure functions on bytes; nothing waits, nothing fails.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/base/types.h"
#include "src/bootstrap/key.h"

namespace catenary {

enum class Side : std::uint8_t { kInitiator, kAcceptor };

using Nonce = std::array<std::byte, 32>;
using Greeting = std::array<std::byte, 40>;

// How long, and how many at a time, an acceptor bears those who have not greeted with a seal. When
// they are too many, the oldest goes.
inline constexpr int kStrangerPatienceMs = 2000;
inline constexpr std::size_t kMostStrangers = 64;

// A fresh nonce for an initiator.
Nonce sealed_nonce(const Key& key, std::string_view purpose);
bool is_sealed(const Nonce& nonce, const Key& key, std::string_view purpose);

Greeting make_greeting(Side speaker, const Nonce& nonce);
// The nonce of a greeting that `speaker` would send, nullopt for anything else.
std::optional<Nonce> parse_greeting(Side speaker, ByteView bytes);

// What both ends know once the greetings are exchanged.
struct Handshake {
  Key key;
  std::string_view purpose;
  Nonce initiator;
  Nonce acceptor;

  Mac proof(Side prover) const;
  // Fresh for each connection, the same at both ends.
  Key session_key() const;
};

}  // namespace catenary
