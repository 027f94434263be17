#include "src/comm/split.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr std::int64_t kWithoutParent_ms = 5000;

struct Choice {
  int color;
  int key;
};

template <typename Value>
Bytes to_bytes(const Value& value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename Value>
Value from_bytes(const Bytes& bytes, int rank) {
  Value value;
  if (bytes.size() != sizeof value) {
    throw_error(ErrorCode::kRemote, "rank %d sent a malformed part of ncclCommSplit", rank);
  }
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Where the ranks of a color meet. Nobody may be missing in the exchange, or the others would wait:
// who leads and has no id to give gives none, and fails then.
std::vector<Bytes> exchange_ids(Communicator& parent, bool leads, const Config& config) {
  if (!leads) return parent.exchange({});
  Bytes id;
  std::exception_ptr failure;
  try {
    id = to_bytes(create_unique_id(config));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  std::vector<Bytes> ids = parent.exchange(id);
  if (failure) std::rethrow_exception(failure);
  return ids;
}

// Who is missing may be so because the parent has failed, which says more. But it may have failed
// of a rank that has no part in this, so those who have are given a moment.
void join_beside(Communicator& child, const UniqueId& id, const TransportFactory& transports,
                 Communicator& parent) {
  std::optional<Deadline> moment;
  const std::function<bool()> pointless = [&] {
    if (parent.is_abandoned()) return true;
    if (!moment && parent.failure()) moment = Deadline::after_ms(kWithoutParent_ms);
    return moment && moment->passed();
  };
  try {
    child.join(id, transports, &pointless);
  } catch (const std::exception&) {
    if (const std::optional<Error> failure = parent.known_failure()) throw Error(*failure);
    throw;
  }
}

// The parent ranks of one color in their new order.
std::vector<int> members_of(int color, const std::vector<Choice>& choices) {
  std::vector<int> members;
  for (int rank = 0; rank < static_cast<int>(choices.size()); ++rank) {
    if (choices[static_cast<std::size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
  });
  return members;
}

}  // namespace

std::shared_ptr<Communicator> split(Communicator& parent, int color, int key,
                                    const CommunicatorOptions& options, const Config& config,
                                    const TransportFactory& transports) {
  const std::vector<Bytes> published = parent.exchange(to_bytes(Choice{color, key}));
  std::vector<Choice> choices;
  for (std::size_t rank = 0; rank < published.size(); ++rank) {
    choices.push_back(from_bytes<Choice>(published[rank], static_cast<int>(rank)));
  }
  const std::vector<int> members =
      color == kNoColor ? std::vector<int>{} : members_of(color, choices);
  // The first member is where the others meet, at an address of its own and not at NCCL_COMM_ID,
  // which is the parent's. Everyone takes part in the exchange of ids.
  Config own_address = config;
  own_address.comm_id.clear();
  const bool leads = !members.empty() && members.front() == parent.rank();
  const std::vector<Bytes> ids = exchange_ids(parent, leads, own_address);
  if (members.empty()) return nullptr;
  const int leader = members.front();
  if (ids[static_cast<std::size_t>(leader)].empty()) {
    throw_error(
        ErrorCode::kRemote,
        "ncclCommSplit : rank %d of the parent, where the ranks of this color were to meet, "
        "has failed; its own error says why",
        leader);
  }
  const auto id = from_bytes<UniqueId>(ids[static_cast<std::size_t>(leader)], leader);
  const auto place = std::find(members.begin(), members.end(), parent.rank());
  auto communicator =
      Communicator::make(static_cast<int>(place - members.begin()),
                         static_cast<int>(members.size()), parent.device(), options, config);
  join_beside(*communicator, id, transports, parent);
  return communicator;
}

std::shared_ptr<Communicator> shrink(Communicator& parent, std::span<const int> excluded,
                                     const CommunicatorOptions& options, const Config& config,
                                     const TransportFactory& transports) {
  std::vector<int> members;
  for (int rank = 0; rank < parent.nranks(); ++rank) {
    if (std::find(excluded.begin(), excluded.end(), rank) == excluded.end())
      members.push_back(rank);
  }
  const auto place = std::find(members.begin(), members.end(), parent.rank());
  if (place == members.end()) {
    throw_error(ErrorCode::kInvalidArgument,
                "ncclCommShrink : rank %d is excluded, but calls; only ranks that remain may",
                parent.rank());
  }
  auto communicator =
      Communicator::make(static_cast<int>(place - members.begin()),
                         static_cast<int>(members.size()), parent.device(), options, config);
  // The parent may have failed, and may have been aborted for this.
  const std::function<bool()> pointless = [&parent] { return parent.is_abandoned(); };
  communicator->join(parent.id(), transports, &pointless);
  return communicator;
}

}  // namespace catenary
