// Messages: what the payloads of frames mean. A struct each, with its encoding.
//
// `parse` gives nullopt for anything that encode could not have made; it allocates no more than the
// payload holds. Values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/types.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/key.h"

namespace catenary {

inline constexpr int kMaxRanks = 1 << 18;

// Random for each process: tells whether two ends live in the same one.
using ProcessToken = std::array<std::byte, 16>;

// A process, as the others know it.
struct ProcessName {
  ProcessToken token{};
  std::string host;
  std::uint32_t pid = 0;

  // "host:pid", for messages.
  std::string text() const;
  static ProcessName mine();
};

// Must be the same on all ranks.
std::uint32_t library_version();

struct JoinMessage {
  std::uint32_t version = 0;  // of the library
  int rank = 0;
  int nranks = 0;
  ProcessName process;

  Frame encode() const;
  static std::optional<JoinMessage> parse(ByteView payload);
};

// Ranks that live in the root's own process: if it dies, so do they.
struct RootRanksMessage {
  ProcessName process;
  std::vector<int> ranks;

  Frame encode() const;
  static std::optional<RootRanksMessage> parse(ByteView payload);
};

// All ranks are here.
struct WelcomeMessage {
  Key salt{};  // random for each communicator

  Frame encode() const;
  static std::optional<WelcomeMessage> parse(ByteView payload);
};

// One rank's part of an all-gather.
struct GatherMessage {
  std::uint32_t round = 0;
  ByteView part;  // of the payload, or of the caller's

  Frame encode() const;
  static std::optional<GatherMessage> parse(ByteView payload);
};

// The parts of consecutive ranks; an all-gather's result is as many of these as it takes.
struct GatheredMessage {
  std::uint32_t round = 0;
  int first_rank = 0;
  std::vector<Bytes> parts;

  static std::optional<GatheredMessage> parse(ByteView payload);
};
std::vector<Frame> encode_gathered(std::uint32_t round, const std::vector<Bytes>& parts);

struct FaultMessage {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;

  Frame encode() const;
  static std::optional<FaultMessage> parse(ByteView payload);
};

// The answer to a query: who has not come, as text; "" if nobody is awaited.
struct MissingMessage {
  std::string ranks;
  std::string why;  // as far as the root knows; "" mostly

  Frame encode() const;
  static std::optional<MissingMessage> parse(ByteView payload);
};

// A rank of the root's process has said goodbye.
struct LeftMessage {
  int rank = 0;

  Frame encode() const;
  static std::optional<LeftMessage> parse(ByteView payload);
};

// What a rank says of itself. From the member to the root, and from there to all others.
struct ClaimMessage {
  int rank = 0;
  Bytes claim;

  Frame encode() const;
  static std::optional<ClaimMessage> parse(ByteView payload);
};

// A rank has come so far with what it does before it leaves. From the root: all who are there have.
struct SettledMessage {
  std::uint32_t step = 0;

  Frame encode() const;
  static std::optional<SettledMessage> parse(ByteView payload);
};

// "rank 3", "ranks 2, 5", "ranks 0, 1, 2, ... (13 more)".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace catenary
