#include "src/transport/link_table.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {
namespace {

void append(Bytes& blob, ByteView bytes) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  const auto* raw = reinterpret_cast<const std::byte*>(&count);
  blob.insert(blob.end(), raw, raw + sizeof count);
  blob.insert(blob.end(), bytes.begin(), bytes.end());
}

// Takes one length-prefixed run off the front of `rest`.
ByteView take(ByteView& rest, int rank) {
  std::uint32_t count = 0;
  if (rest.size() >= sizeof count) std::memcpy(&count, rest.data(), sizeof count);
  if (rest.size() < sizeof count || rest.size() - sizeof count < count) {
    throw_error(ErrorCode::kRemote, "rank %d published a malformed transport address", rank);
  }
  const ByteView run = rest.subspan(sizeof count, count);
  rest = rest.subspan(sizeof count + count);
  return run;
}

Bytes publish_addresses(std::span<const std::unique_ptr<Transport>> transports) {
  Bytes blob;
  for (const auto& transport : transports) {
    append(blob, std::as_bytes(std::span(transport->name())));
    append(blob, transport->address());
  }
  return blob;
}

LinkTable::AddressBook parse_addresses(ByteView blob, int rank) {
  LinkTable::AddressBook book;
  while (!blob.empty()) {
    const ByteView name = take(blob, rank);
    const ByteView address = take(blob, rank);
    book.emplace(std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                 Bytes(address.begin(), address.end()));
  }
  return book;
}

// One byte per peer for each transport, named, so that lists may differ between ranks.
Bytes publish_verdict(std::string_view name, const std::vector<bool>& proven) {
  Bytes blob;
  append(blob, std::as_bytes(std::span(name)));
  Bytes row(proven.size());
  std::transform(proven.begin(), proven.end(), row.begin(),
                 [](bool yes) { return static_cast<std::byte>(yes); });
  append(blob, row);
  return blob;
}

}  // namespace

LinkTable::LinkTable(Transports transports, Membership& membership, const Wait& wait)
    : rank_(membership.rank()),
      nranks_(membership.nranks()),
      transports_(std::move(transports)),
      by_peer_(index(nranks_), 0),
      send_links_(index(nranks_) * kChannelCount),
      recv_links_(index(nranks_) * kChannelCount) {
  // Networks are asked only where memory is not enough: opening one costs time, ports and memory.
  // All ranks see the same verdicts, so they agree whether there is a second round.
  const auto networks = std::ranges::stable_partition(
      transports_, [](const auto& transport) { return transport->shares_memory(); });
  const std::span all(transports_);
  const auto near = all.first(all.size() - networks.size());
  std::vector<AddressBook> proven(index(nranks_));
  attach(near, membership, wait, proven);
  if (!joins_all(proven)) {
    const Neighbours here = neighbours(near, proven);
    for (const auto& network : networks) network->note_neighbours(here);
    attach(all.last(networks.size()), membership, wait, proven);
  }
  choose(proven);
}

Neighbours LinkTable::neighbours(std::span<const std::unique_ptr<Transport>> near,
                                 const std::vector<AddressBook>& proven) const {
  Neighbours here = {.place = 0, .ranks = 1};
  for (int peer = 0; peer < nranks_; ++peer) {
    const bool is_near = peer != rank_ && std::ranges::any_of(near, [&](const auto& transport) {
                           return agreed(proven, rank_, peer, transport->name());
                         });
    if (!is_near) continue;
    ++here.ranks;
    if (peer < rank_) ++here.place;
  }
  return here;
}

// One round: everybody's addresses, then what everybody proved of them.
void LinkTable::attach(std::span<const std::unique_ptr<Transport>> round, Membership& membership,
                       const Wait& wait, std::vector<AddressBook>& proven) {
  std::vector<AddressBook> books;
  const std::vector<Bytes> published = membership.all_gather(publish_addresses(round), wait);
  for (int peer = 0; peer < nranks_; ++peer) {
    books.push_back(parse_addresses(published[index(peer)], peer));
  }
  // A rank that dies while others wait to attach it is heard of on the control plane alone.
  const std::function<bool()> someone_failed = [&membership] {
    return membership.poll().has_value();
  };
  const Wait attach_wait = {wait.deadline, wait.cancelled, &someone_failed};
  Bytes verdict;
  for (const auto& transport : round) {
    std::vector<Bytes> addresses;
    for (const AddressBook& book : books) {
      const auto found = book.find(transport->name());
      addresses.push_back(found == book.end() ? Bytes{} : found->second);
    }
    const Bytes row = publish_verdict(transport->name(), transport->attach(addresses, attach_wait));
    verdict.insert(verdict.end(), row.begin(), row.end());
  }
  const std::vector<Bytes> verdicts = membership.all_gather(verdict, wait);
  for (int peer = 0; peer < nranks_; ++peer) {
    proven[index(peer)].merge(parse_addresses(verdicts[index(peer)], peer));
  }
}

// Whether both said of each other that this transport joins them.
bool LinkTable::agreed(const std::vector<AddressBook>& proven, int a, int b,
                       std::string_view name) const {
  const auto proves = [&](int from, int to) {
    const auto row = proven[index(from)].find(name);
    return row != proven[index(from)].end() && row->second.size() == index(nranks_) &&
           row->second[index(to)] != std::byte{0};
  };
  return proves(a, b) && proves(b, a);
}

bool LinkTable::joins_all(const std::vector<AddressBook>& proven) {
  // By transport and rank, so that many ranks cost little.
  std::map<std::string_view, std::vector<const Bytes*>> rows;
  for (std::size_t peer = 0; peer < proven.size(); ++peer) {
    for (const auto& [name, row] : proven[peer]) {
      if (row.size() != proven.size()) continue;
      rows.try_emplace(name, proven.size()).first->second[peer] = &row;
    }
  }
  const auto is_joined = [&rows](std::size_t a, std::size_t b) {
    return std::ranges::any_of(rows, [a, b](const auto& entry) {
      const Bytes* const of_a = entry.second[a];
      const Bytes* const of_b = entry.second[b];
      return of_a != nullptr && of_b != nullptr && (*of_a)[b] != std::byte{0} &&
             (*of_b)[a] != std::byte{0};
    });
  };
  for (std::size_t a = 0; a < proven.size(); ++a) {
    for (std::size_t b = a; b < proven.size(); ++b) {
      if (!is_joined(a, b)) return false;
    }
  }
  return true;
}

// In words, with what each says of itself.
std::string LinkTable::own_offers() const {
  std::string text;
  for (const auto& transport : transports_) {
    const std::string about = transport->about();
    text.append(text.empty() ? "" : ", ").append(transport->name());
    if (!about.empty()) text += " (" + about + ")";
  }
  return text;
}

std::string LinkTable::offers_of(const AddressBook& proven) {
  std::string text;
  for (const auto& [name, row] : proven) text.append(text.empty() ? "" : ", ").append(name);
  return text.empty() ? "none" : text;
}

void LinkTable::choose(const std::vector<AddressBook>& proven) {
  local_ranks_ = 0;
  for (int peer = 0; peer < nranks_; ++peer) {
    const auto best = std::find_if(transports_.begin(), transports_.end(), [&](const auto& t) {
      return agreed(proven, rank_, peer, t->name());
    });
    if (best == transports_.end()) {
      throw_error(ErrorCode::kRemote,
                  "no transport joins rank %d, which has %s, and rank %d, which has %s", rank_,
                  own_offers().c_str(), peer, offers_of(proven[index(peer)]).c_str());
    }
    by_peer_[index(peer)] = static_cast<std::size_t>(best - transports_.begin());
    Transport* used = best->get();
    if (std::find(in_use_.begin(), in_use_.end(), used) == in_use_.end()) note_used(*used);
    if (used->shares_memory()) ++local_ranks_;
    if (peer == rank_) continue;
    log_info(
        Subsystem::kInit, -1,
        format("Channel 00 : %d -> %d via %s", rank_, peer, std::string(used->name()).c_str()));
  }
}

void LinkTable::note_used(Transport& transport) {
  in_use_.push_back(&transport);
  const std::string about = transport.about();
  if (about.empty()) return;
  log_info(Subsystem::kInit, -1,
           format("Rank %d uses %s: %s", rank_, std::string(transport.name()).c_str(),
                  about.c_str()));
}

bool LinkTable::joins_others_with_bells() const {
  for (int peer = 0; peer < nranks_; ++peer) {
    if (peer != rank_ && transport_of(peer).doorbell() != nullptr) return true;
  }
  return false;
}

SendLink& LinkTable::send_link(int peer, Channel channel) {
  auto& link = send_links_[index(peer, channel)];
  if (!link) link = transport_of(peer).connect({peer, channel});
  return *link;
}

RecvLink& LinkTable::recv_link(int peer, Channel channel) {
  auto& link = recv_links_[index(peer, channel)];
  if (!link) link = transport_of(peer).listen({peer, channel});
  return *link;
}

RecvLink* LinkTable::recv_link_if_come(int peer, Channel channel) {
  return transport_of(peer).has_come({peer, channel}) ? &recv_link(peer, channel) : nullptr;
}

}  // namespace catenary
