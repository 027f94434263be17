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
// replayed nor reflected. Pure functions on bytes; nothing waits, nothing fails.
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
