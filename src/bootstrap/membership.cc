#include "src/bootstrap/membership.h"

#include "src/base/log.h"
#include "src/bootstrap/reach_root.h"
#include "src/bootstrap/wire.h"

namespace catenary {
namespace {

void check_place(int rank, int nranks) {
  if (nranks < 1 || nranks > kMaxRanks) {
    throw_error(ErrorCode::kInvalidArgument, "a communicator of %d ranks: 1 to %d are possible",
                nranks, kMaxRanks);
  }
  if (rank < 0 || rank >= nranks) {
    throw_error(ErrorCode::kInvalidArgument, "rank %d is not from 0 to %d", rank, nranks - 1);
  }
}

JoinMessage join_message(int rank, int nranks) {
  return {library_version(), rank, nranks, ProcessName::mine()};
}

ControlChannel approach(const Rendezvous& rendezvous, int rank, int nranks, const Wait& wait,
                        const Config& config) {
  check_place(rank, nranks);
  return reach_root(rendezvous, rank, wait, config);
}

}  // namespace

Membership::Membership(const UniqueId& id, int rank, int nranks, const Wait& wait,
                       const Config& config)
    : rank_(rank),
      nranks_(nranks),
      line_(approach(decode_unique_id(id), rank, nranks, wait, config), join_message(rank, nranks),
            decode_unique_id(id).root.text()) {
  line_.wait_for([&] { return line_.welcome().has_value(); }, wait, "the other ranks to join");
  const Key& salt = line_.welcome()->salt;
  key_ = catenary::derive_key(decode_unique_id(id).secret, "communicator", salt);
  session_ = WireReader(key_from(salt, "session number")).number<std::uint64_t>();
  log_info(
      Subsystem::kBootstrap, -1,
      format("Bootstrap: rank %d of %d has joined session 0x%016llx at %s", rank, nranks,
             static_cast<unsigned long long>(session_), decode_unique_id(id).root.text().c_str()));
}

std::array<std::byte, 32> Membership::derive_key(std::string_view label) const {
  return catenary::derive_key(key_, label);
}

std::vector<Bytes> Membership::all_gather(ByteView mine, const Wait& wait) {
  if (mine.size() > kMaxGatherBytes) {
    throw_error(ErrorCode::kInternal,
                "rank %d gives %zu bytes to an all-gather of the control plane; "
                "%zu are the most",
                rank_, mine.size(), kMaxGatherBytes);
  }
  line_.expect_parts(round_);
  line_.send(GatherMessage{round_, mine}.encode());
  line_.wait_for([&] { return line_.has_all_parts(); }, wait,
                 "the other ranks to exchange addresses");
  ++round_;
  return line_.take_parts();
}

}  // namespace catenary
