#include "src/transport/put_control.h"

#include <algorithm>
#include <cstring>

#include "src/transport/transport.h"

namespace catenary {
namespace {

constexpr std::size_t kProofBytes = kControlBytes - sizeof(ControlWords);
static_assert(kProofBytes == sizeof(Mac));

ByteView words_of(const ControlMessage& message) {
  return ByteView(message).first(sizeof(ControlWords));
}

Mac proof_of(const Key& key, ByteView words) {
  return keyed_mac(key, {bytes_of("control message"), words});
}

}  // namespace

ControlMessage seal_control(const Key& key, const ControlWords& words) {
  ControlMessage message = {};
  std::memcpy(message.data(), &words, sizeof words);
  const Mac proof = proof_of(key, words_of(message));
  std::copy_n(proof.begin(), kProofBytes, message.begin() + sizeof words);
  return message;
}

std::optional<ControlWords> open_control(const Key& key, const ControlMessage& message, int self,
                                         int nranks) {
  const Mac proof = proof_of(key, words_of(message));
  if (!equal_secrets(ByteView(proof).first(kProofBytes), ByteView(message).last(kProofBytes))) {
    return std::nullopt;
  }
  ControlWords words;
  std::memcpy(&words, message.data(), sizeof words);
  const bool is_known = words.kind >= ControlKind::kOpen && words.kind <= ControlKind::kTally;
  if (!is_known || words.channel >= kChannelCount || words.to != static_cast<std::uint32_t>(self) ||
      words.from >= static_cast<std::uint32_t>(nranks)) {
    return std::nullopt;
  }
  return words;
}

}  // namespace catenary
