// Frames: what travels on a control connection once both ends have proven themselves.
//
//     | payload bytes, 4 | type, 1 | zero, 3 | sequence, 8 | payload | MAC, 32 |
//
// The MAC covers all before it, under a key for this connection and direction; the sequence counts
// from 0, so a frame can be neither changed, replayed, dropped nor sent back. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/size_literals.h"
#include "src/base/types.h"
#include "src/bootstrap/key.h"

namespace catenary {

enum class MessageType : std::uint8_t {
  // From a member to the root.
  kJoin = 1,
  kGather,
  kQuery,
  kLeave,
  // Both ways.
  kFault,
  // From the root to a member.
  kRootRanks,
  kWelcome,
  kGathered,
  kMissing,
  kLeft,
  kGoodbye,
  // Both ways; at the end, so that the numbers above stay what older versions know.
  kClaim,
  kSettled,
};
inline constexpr MessageType kLastMessageType = MessageType::kSettled;

struct Frame {
  MessageType type;
  Bytes payload;
};

inline constexpr std::size_t kFrameHeaderBytes = 16;
inline constexpr std::size_t kFrameMacBytes = 32;
// The largest thing one rank may give to an all-gather, and what a message puts around it.
inline constexpr std::size_t kMaxGatherBytes = 64_KB;
inline constexpr std::size_t kMaxPayloadBytes = kMaxGatherBytes + 1_KB;
// The longest claim.
inline constexpr std::size_t kMaxClaimBytes = 64;

struct FrameHeader {
  std::uint32_t payload_bytes;
  MessageType type;
  std::uint64_t sequence;

  std::size_t frame_bytes() const { return kFrameHeaderBytes + payload_bytes + kFrameMacBytes; }
};

Bytes seal_frame(const Key& key, std::uint64_t sequence, const Frame& frame);

// The header at the start of `bytes`; nullopt if it cannot be one. Needs kFrameHeaderBytes.
std::optional<FrameHeader> parse_frame_header(ByteView bytes);
// The frame that fills all of `bytes`; nullopt if it is not the one with that key and sequence.
std::optional<Frame> open_frame(const Key& key, std::uint64_t sequence, ByteView bytes);

}  // namespace catenary
