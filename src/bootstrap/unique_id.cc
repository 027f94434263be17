#include "src/bootstrap/unique_id.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <mutex>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/bootstrap/root_service.h"
#include "src/bootstrap/socket_interface.h"
#include "src/bootstrap/tcp.h"
#include "src/bootstrap/wire.h"

namespace catenary {
namespace {

constexpr std::string_view kMagic = "CTNR";
constexpr std::uint8_t kIdVersion = 1;
constexpr std::uint8_t kFlagFixedAddress = 1;
constexpr std::uint8_t kFlagIpv6 = 2;
constexpr std::size_t kZeroBytes = 36;
constexpr std::size_t kSumBytes = 16;

// Against accidents, not attacks.
std::array<std::byte, kSumBytes> checksum(ByteView bytes) {
  const Key hash = key_from(bytes, "unique id checksum");
  std::array<std::byte, kSumBytes> sum;
  std::copy_n(hash.begin(), sum.size(), sum.begin());
  return sum;
}

Key fixed_secret(const Config& config, const SocketAddress& root) {
  if (config.secret_file.empty()) {
    static std::once_flag told;
    std::call_once(told, [] {
      log_info(Subsystem::kBootstrap, -1,
               "NCCL_COMM_ID without CATENARY_SECRET_FILE: this job is not protected by a secret");
    });
    // The port alone, since ranks may write the same host in different ways.
    return key_from(bytes_of(std::to_string(root.port)), "comm id without a secret");
  }
  std::ifstream file(config.secret_file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    throw_error(ErrorCode::kSystem, "CATENARY_SECRET_FILE: cannot read %s",
                config.secret_file.c_str());
  }
  if (content.empty()) {
    throw_error(ErrorCode::kInvalidUsage, "CATENARY_SECRET_FILE: %s is empty",
                config.secret_file.c_str());
  }
  return key_from(bytes_of(content), "comm id secret file");
}

}  // namespace

UniqueId encode_unique_id(const Rendezvous& rendezvous) {
  WireWriter writer;
  writer.bytes(bytes_of(kMagic));
  writer.number(kIdVersion);
  writer.number(static_cast<std::uint8_t>((rendezvous.fixed_address ? kFlagFixedAddress : 0) |
                                          (rendezvous.root.family == AF_INET6 ? kFlagIpv6 : 0)));
  writer.number(rendezvous.root.port);
  writer.bytes(rendezvous.root.host);
  writer.number(rendezvous.root.scope);
  writer.bytes(rendezvous.job);
  writer.bytes(rendezvous.secret);
  writer.bytes(std::array<std::byte, kZeroBytes>{});
  Bytes bytes = writer.take();
  const auto sum = checksum(bytes);
  UniqueId id;
  std::ranges::copy(sum, std::ranges::copy(bytes, id.bytes.begin()).out);
  return id;
}

Rendezvous decode_unique_id(const UniqueId& id) {
  const ByteView covered = ByteView(id.bytes).first(id.bytes.size() - kSumBytes);
  WireReader reader(id.bytes);
  const bool marked = std::ranges::equal(reader.bytes(kMagic.size()), bytes_of(kMagic));
  const auto version = reader.number<std::uint8_t>();
  if (!marked || !std::ranges::equal(ByteView(id.bytes).last(kSumBytes), checksum(covered))) {
    throw_error(ErrorCode::kInvalidArgument, "not an id made by ncclGetUniqueId");
  }
  if (version != kIdVersion) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "an id made by ncclGetUniqueId of another version of the library (id version %u, ours "
        "is %u)",
        unsigned{version}, unsigned{kIdVersion});
  }
  Rendezvous rendezvous;
  const auto flags = reader.number<std::uint8_t>();
  rendezvous.fixed_address = (flags & kFlagFixedAddress) != 0;
  rendezvous.root.family = (flags & kFlagIpv6) != 0 ? AF_INET6 : AF_INET;
  rendezvous.root.port = reader.number<std::uint16_t>();
  rendezvous.root.host = reader.array<16>();
  rendezvous.root.scope = reader.number<std::uint32_t>();
  rendezvous.job = reader.array<16>();
  rendezvous.secret = reader.array<32>();
  return rendezvous;
}

UniqueId create_unique_id(const Config& config) {
  Rendezvous rendezvous;
  if (!config.comm_id.empty()) {
    rendezvous.fixed_address = true;
    rendezvous.root =
        SocketAddress::resolve(config.comm_id, parse_socket_family(config.socket_family));
    rendezvous.secret = fixed_secret(config, rendezvous.root);
    return encode_unique_id(rendezvous);
  }
  fill_random(rendezvous.job);
  rendezvous.secret = random_key();
  rendezvous.root =
      choose_socket_interface(list_socket_interfaces(), config.socket_ifname, config.socket_family)
          .address;
  UnsharedFd listener = listen_on(rendezvous.root);
  RootService::process().open(std::move(listener), rendezvous, config.init_timeout_s);
  return encode_unique_id(rendezvous);
}

}  // namespace catenary
