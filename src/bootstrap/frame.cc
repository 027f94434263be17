#include "src/bootstrap/frame.h"

#include "src/base/error.h"
#include "src/bootstrap/wire.h"

namespace catenary {

Bytes seal_frame(const Key& key, std::uint64_t sequence, const Frame& frame) {
  CATENARY_ASSERT(frame.payload.size() <= kMaxPayloadBytes);
  WireWriter writer;
  writer.number(static_cast<std::uint32_t>(frame.payload.size()));
  writer.number(static_cast<std::uint8_t>(frame.type));
  writer.bytes(std::array<std::byte, 3>{});
  writer.number(sequence);
  writer.bytes(frame.payload);
  Bytes sealed = writer.take();
  const Mac mac = keyed_mac(key, {sealed});
  sealed.insert(sealed.end(), mac.begin(), mac.end());
  return sealed;
}

std::optional<FrameHeader> parse_frame_header(ByteView bytes) {
  WireReader reader(bytes);
  FrameHeader header;
  header.payload_bytes = reader.number<std::uint32_t>();
  const auto type = reader.number<std::uint8_t>();
  const auto zero = reader.array<3>();
  header.sequence = reader.number<std::uint64_t>();
  if (!reader.ok() || header.payload_bytes > kMaxPayloadBytes) return std::nullopt;
  if (type == 0 || type > static_cast<std::uint8_t>(kLastMessageType)) return std::nullopt;
  if (zero != std::array<std::byte, 3>{}) return std::nullopt;
  header.type = static_cast<MessageType>(type);
  return header;
}

std::optional<Frame> open_frame(const Key& key, std::uint64_t sequence, ByteView bytes) {
  const std::optional<FrameHeader> header = parse_frame_header(bytes);
  if (!header || header->frame_bytes() != bytes.size()) return std::nullopt;
  const ByteView covered = bytes.first(bytes.size() - kFrameMacBytes);
  if (!equal_secrets(bytes.last(kFrameMacBytes), keyed_mac(key, {covered}))) return std::nullopt;
  if (header->sequence != sequence) return std::nullopt;
  const ByteView payload = covered.subspan(kFrameHeaderBytes);
  return Frame{header->type, Bytes(payload.begin(), payload.end())};
}

}  // namespace catenary
