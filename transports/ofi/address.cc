#include "transports/ofi/address.h"

#include <sys/stat.h>

#include <cstring>

#include "src/topology/machine.h"
#include "src/transport/put_port.h"

namespace catenary::ofi {
namespace {

constexpr char kMagic[4] = {'o', 'f', 'i', '6'};

// Then come the texts of which it tells the lengths, then the rails.
struct Head {
  char magic[4] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3]};
  std::uint32_t format = 0;
  std::uint32_t has_seals = 0;
  std::uint32_t provider_bytes = 0;
  std::uint32_t machine_bytes = 0;
  std::uint32_t rails = 0;
};

// Then comes the name.
struct RailHead {
  std::uint32_t name_bytes = 0;
  SocketAddressWire beside;
};

void append(Bytes& bytes, ByteView more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

template <typename Wire>
void append_wire(Bytes& bytes, const Wire& wire) {
  append(bytes, std::as_bytes(std::span(&wire, 1)));
}

// Takes bytes from the front as long as there are enough.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  std::optional<ByteView> take(std::size_t bytes) {
    if (bytes > rest_.size()) return std::nullopt;
    const ByteView taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  template <typename Wire>
  std::optional<Wire> take_wire() {
    const std::optional<ByteView> bytes = take(sizeof(Wire));
    if (!bytes) return std::nullopt;
    Wire wire;
    std::memcpy(&wire, bytes->data(), sizeof wire);
    return wire;
  }
  std::optional<std::string> take_text(std::size_t length) {
    const std::optional<ByteView> bytes = take(length);
    if (!bytes) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
};

std::optional<RailAddress> take_rail(Reader& reader) {
  const auto head = reader.take_wire<RailHead>();
  if (!head || head->name_bytes == 0) return std::nullopt;
  const std::optional<ByteView> name = reader.take(head->name_bytes);
  if (!name) return std::nullopt;
  return RailAddress{Bytes(name->begin(), name->end()), head->beside.address()};
}

}  // namespace

Bytes make_address(const Address& address) {
  Head head;
  head.format = address.format;
  head.has_seals = address.has_seals ? 1 : 0;
  head.provider_bytes = static_cast<std::uint32_t>(address.provider.size());
  head.machine_bytes = static_cast<std::uint32_t>(address.machine.size());
  head.rails = static_cast<std::uint32_t>(address.rails.size());
  Bytes bytes;
  append_wire(bytes, head);
  append(bytes, std::as_bytes(std::span(address.provider)));
  append(bytes, std::as_bytes(std::span(address.machine)));
  for (const RailAddress& rail : address.rails) {
    RailHead rail_head = {.name_bytes = static_cast<std::uint32_t>(rail.name.size()), .beside = {}};
    if (rail.beside) rail_head.beside = SocketAddressWire(*rail.beside);
    append_wire(bytes, rail_head);
    append(bytes, rail.name);
  }
  return bytes;
}

std::optional<Address> parse_address(ByteView address) {
  Reader reader(address);
  const auto head = reader.take_wire<Head>();
  if (!head || std::memcmp(head->magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  if (head->rails == 0 || head->rails > kMostRails) return std::nullopt;
  const std::optional<std::string> provider = reader.take_text(head->provider_bytes);
  const std::optional<std::string> machine = reader.take_text(head->machine_bytes);
  if (!provider || !machine) return std::nullopt;
  Address parsed = {*provider, head->format, head->has_seals != 0, *machine, {}};
  for (std::uint32_t i = 0; i < head->rails; ++i) {
    std::optional<RailAddress> rail = take_rail(reader);
    if (!rail) return std::nullopt;
    parsed.rails.push_back(std::move(*rail));
  }
  if (!reader.is_at_end()) return std::nullopt;
  return parsed;
}

bool reaches(ByteView address, ByteView peer_address) {
  const std::optional<Address> ours = parse_address(address);
  const std::optional<Address> theirs = parse_address(peer_address);
  return ours && theirs && ours->provider == theirs->provider && ours->format == theirs->format &&
         ours->has_seals == theirs->has_seals && ours->machine == theirs->machine;
}

// Its messages lie in files: containers of one machine may each have a folder of their own.
std::string machine_for(const std::string& provider) {
  if (provider != "shm") return "";
  struct stat folder = {};
  if (::stat("/dev/shm", &folder) != 0) return boot_id();
  return boot_id() + " " + std::to_string(folder.st_dev);
}

}  // namespace catenary::ofi
