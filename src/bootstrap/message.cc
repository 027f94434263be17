#include "src/bootstrap/message.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/bootstrap/wire.h"

namespace catenary {
namespace {

constexpr std::size_t kMaxHostBytes = 64;
constexpr std::size_t kMaxTextBytes = 1000;
constexpr std::size_t kNamedRanks = 16;

// A rank that fits; kNobody otherwise, which no check of a range lets through.
int rank_in(std::uint32_t value) {
  return value < static_cast<std::uint32_t>(kMaxRanks) ? static_cast<int>(value) : kNobody;
}

void write_process(WireWriter& writer, const ProcessName& process) {
  writer.bytes(process.token);
  writer.number(process.pid);
  writer.text(process.host, kMaxHostBytes);
}

ProcessName read_process(WireReader& reader) {
  ProcessName process;
  process.token = reader.array<16>();
  process.pid = reader.number<std::uint32_t>();
  process.host = reader.text(kMaxHostBytes);
  return process;
}

bool is_code(std::uint8_t value) {
  switch (static_cast<ErrorCode>(value)) {
    case ErrorCode::kUnhandledDevice:
    case ErrorCode::kSystem:
    case ErrorCode::kInternal:
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidUsage:
    case ErrorCode::kRemote:
    case ErrorCode::kTimeout: return true;
  }
  return false;
}

}  // namespace

std::string ProcessName::text() const { return format("%s:%u", host.c_str(), pid); }

ProcessName ProcessName::mine() {
  static const Key random = random_key();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  ProcessName process;
  process.host = std::string(host).substr(0, kMaxHostBytes);
  process.pid = static_cast<std::uint32_t>(::getpid());
  // A forked child has its parent's random bytes, but is another process.
  const Key token = derive_key(random, "process", std::as_bytes(std::span(&process.pid, 1)));
  std::copy_n(token.begin(), process.token.size(), process.token.begin());
  return process;
}

std::uint32_t library_version() { return CATENARY_VERSION_NUMBER; }

Frame JoinMessage::encode() const {
  WireWriter writer;
  writer.number(version);
  writer.number(static_cast<std::uint32_t>(rank));
  writer.number(static_cast<std::uint32_t>(nranks));
  write_process(writer, process);
  return {MessageType::kJoin, writer.take()};
}

std::optional<JoinMessage> JoinMessage::parse(ByteView payload) {
  WireReader reader(payload);
  JoinMessage message;
  message.version = reader.number<std::uint32_t>();
  message.rank = rank_in(reader.number<std::uint32_t>());
  const auto nranks = reader.number<std::uint32_t>();
  message.process = read_process(reader);
  if (!reader.at_end() || nranks == 0 || nranks > kMaxRanks) return std::nullopt;
  message.nranks = static_cast<int>(nranks);
  if (message.rank < 0 || message.rank >= message.nranks) return std::nullopt;
  return message;
}

Frame RootRanksMessage::encode() const {
  WireWriter writer;
  write_process(writer, process);
  writer.number(static_cast<std::uint32_t>(ranks.size()));
  for (const int rank : ranks) writer.number(static_cast<std::uint32_t>(rank));
  return {MessageType::kRootRanks, writer.take()};
}

std::optional<RootRanksMessage> RootRanksMessage::parse(ByteView payload) {
  WireReader reader(payload);
  RootRanksMessage message;
  message.process = read_process(reader);
  const auto count = reader.number<std::uint32_t>();
  if (!reader.ok() || reader.rest().size() != std::size_t{count} * 4) return std::nullopt;
  for (std::uint32_t i = 0; i < count; ++i) {
    const int rank = rank_in(reader.number<std::uint32_t>());
    if (rank < 0) return std::nullopt;
    message.ranks.push_back(rank);
  }
  return message;
}

Frame WelcomeMessage::encode() const {
  return {MessageType::kWelcome, Bytes(salt.begin(), salt.end())};
}

std::optional<WelcomeMessage> WelcomeMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const WelcomeMessage message = {reader.array<32>()};
  if (!reader.at_end()) return std::nullopt;
  return message;
}

Frame GatherMessage::encode() const {
  WireWriter writer;
  writer.number(round);
  writer.bytes(part);
  return {MessageType::kGather, writer.take()};
}

std::optional<GatherMessage> GatherMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const auto round = reader.number<std::uint32_t>();
  if (!reader.ok() || reader.rest().size() > kMaxGatherBytes) return std::nullopt;
  return GatherMessage{round, reader.rest()};
}

std::vector<Frame> encode_gathered(std::uint32_t round, const std::vector<Bytes>& parts) {
  constexpr std::size_t kHeadBytes = 12;
  std::vector<Frame> frames;
  for (std::size_t first = 0; first < parts.size();) {
    std::size_t last = first;
    std::size_t payload_bytes = kHeadBytes;
    while (last < parts.size() && payload_bytes + 4 + parts[last].size() <= kMaxPayloadBytes) {
      payload_bytes += 4 + parts[last++].size();
    }
    WireWriter writer;
    writer.number(round);
    writer.number(static_cast<std::uint32_t>(first));
    writer.number(static_cast<std::uint32_t>(last - first));
    for (; first < last; ++first) {
      writer.number(static_cast<std::uint32_t>(parts[first].size()));
      writer.bytes(parts[first]);
    }
    frames.push_back({MessageType::kGathered, writer.take()});
  }
  return frames;
}

std::optional<GatheredMessage> GatheredMessage::parse(ByteView payload) {
  WireReader reader(payload);
  GatheredMessage message;
  message.round = reader.number<std::uint32_t>();
  message.first_rank = rank_in(reader.number<std::uint32_t>());
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const ByteView part = reader.bytes(reader.number<std::uint32_t>());
    message.parts.emplace_back(part.begin(), part.end());
  }
  if (!reader.at_end() || message.first_rank < 0 || count == 0) return std::nullopt;
  return message;
}

Frame FaultMessage::encode() const {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(code));
  writer.text(text, kMaxTextBytes);
  return {MessageType::kFault, writer.take()};
}

std::optional<FaultMessage> FaultMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const auto code = reader.number<std::uint8_t>();
  FaultMessage message = {static_cast<ErrorCode>(code), reader.text(kMaxTextBytes)};
  if (!reader.at_end() || !is_code(code)) return std::nullopt;
  return message;
}

Frame MissingMessage::encode() const {
  WireWriter writer;
  writer.text(ranks, kMaxTextBytes);
  writer.text(why, kMaxTextBytes);
  return {MessageType::kMissing, writer.take()};
}

std::optional<MissingMessage> MissingMessage::parse(ByteView payload) {
  WireReader reader(payload);
  MissingMessage message;
  message.ranks = reader.text(kMaxTextBytes);
  message.why = reader.text(kMaxTextBytes);
  if (!reader.at_end()) return std::nullopt;
  return message;
}

Frame LeftMessage::encode() const {
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(rank));
  return {MessageType::kLeft, writer.take()};
}

std::optional<LeftMessage> LeftMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const LeftMessage message = {rank_in(reader.number<std::uint32_t>())};
  if (!reader.at_end() || message.rank < 0) return std::nullopt;
  return message;
}

Frame ClaimMessage::encode() const {
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(rank));
  writer.bytes(claim);
  return {MessageType::kClaim, writer.take()};
}

std::optional<ClaimMessage> ClaimMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const int rank = rank_in(reader.number<std::uint32_t>());
  if (!reader.ok() || rank < 0 || reader.rest().size() > kMaxClaimBytes) return std::nullopt;
  return ClaimMessage{rank, Bytes(reader.rest().begin(), reader.rest().end())};
}

Frame SettledMessage::encode() const {
  WireWriter writer;
  writer.number(step);
  return {MessageType::kSettled, writer.take()};
}

std::optional<SettledMessage> SettledMessage::parse(ByteView payload) {
  WireReader reader(payload);
  const SettledMessage message = {reader.number<std::uint32_t>()};
  if (!reader.at_end()) return std::nullopt;
  return message;
}

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kNamedRanks; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kNamedRanks) text += format(", ... (%zu more)", ranks.size() - kNamedRanks);
  return text;
}

}  // namespace catenary
