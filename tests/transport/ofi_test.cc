// What is special about libfabric: which provider is chosen, what is refused, and strangers.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>

#include "src/base/error.h"
#include "src/transport/put_control.h"
#include "tests/support/temporary_folder.h"
#include "tests/transport/attached_ranks.h"
#include "transports/built_in.h"
#include "transports/ofi/address.h"
#include "transports/ofi/card.h"
#include "transports/ofi/transport.h"

namespace catenary::test {
namespace {

Config config_for(const std::string& provider) {
  Config config;
  config.socket_ifname = "=lo";
  config.fi_provider = provider;
  return config;
}

TransportContext context_for(const Config& config) {
  TransportContext context;
  context.config = &config;
  context.key = random_test_key();
  return context;
}

std::string refusal_of(const Config& config) {
  try {
    ofi::make_transport(context_for(config))->address();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    return error.what();
  }
  return "";
}

std::string provider_for(const std::string& asked) {
  const Config config = config_for(asked);
  const auto address = ofi::parse_address(ofi::make_transport(context_for(config))->address());
  return address ? address->provider : "none";
}

TEST(Ofi, the_best_provider_is_chosen_where_none_is_asked_for) {
  EXPECT_EQ(provider_for(""), "net");
}

TEST(Ofi, the_first_part_of_a_providers_name_will_do) {
  EXPECT_EQ(provider_for("udp"), "udp;ofi_rxd");
}

TEST(Ofi, of_several_names_the_first_that_is_there_is_taken) {
  EXPECT_EQ(provider_for("efa,udp,net"), "udp;ofi_rxd");
  EXPECT_EQ(provider_for("net,udp"), "net");
}

TEST(Ofi, names_behind_a_caret_are_not_taken) {
  EXPECT_EQ(provider_for("^efa,udp"), "net");
  EXPECT_EQ(provider_for("^net"), "tcp;ofi_rxm");
  EXPECT_EQ(provider_for("^"), "net");
  const std::string refusal = refusal_of(config_for("^net,ofi_rxm"));
  EXPECT_NE(refusal.find("FI_PROVIDER=^net,ofi_rxm"), std::string::npos) << refusal;
}

TEST(Ofi, a_provider_that_is_not_there_is_refused_and_others_are_named) {
  const std::string refusal = refusal_of(config_for("efa"));
  EXPECT_NE(refusal.find("FI_PROVIDER=efa"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("tcp;ofi_rxm"), std::string::npos) << refusal;
}

// A list of libfabric's as two sockets with two cards each would have it.
struct Cards {
  struct Entry {
    const char* name;
    unsigned bus;
  };
  explicit Cards(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) {
      ofi::Info info = ofi::copy_of(nullptr);
      info->domain_attr->name = ::strdup(entry.name);
      bus.push_back({.bus_type = FI_BUS_PCI, .attr = {}});
      bus.back().attr.pci.bus_id = static_cast<std::uint8_t>(entry.bus);
      nics.push_back({});
      nics.back().bus_attr = &bus.back();
      if (entry.bus != 0) info->nic = &nics.back();
      if (!all.empty()) all.back()->next = info.get();
      all.push_back(std::move(info));
    }
    for (const auto& [device, near] : {std::pair("0000:3b:00.0", "0-3"),
                                       {"0000:3c:00.0", "0-3"},
                                       {"0000:af:00.0", "4-7"},
                                       {"0000:b0:00.0", "4-7"}}) {
      std::filesystem::create_directory(folder.path() / device);
      std::ofstream(folder.path() / device / "local_cpulist") << near << "\n";
    }
  }
  // The list and its cards are not libfabric's to free.
  ~Cards() {
    for (ofi::Info& info : all) {
      info->next = nullptr;
      info->nic = nullptr;
    }
  }
  // For a process that may use so many cores from the first on, of eight.
  ofi::Cards of(const Neighbours& here, int first, int count, std::size_t rails = 0) const {
    ofi::Seat seat{.here = here, .cores = {}, .machine_cores = 8};
    for (int core = first; core < first + count; ++core) {
      seat.cores.allowed[0] |= std::uint64_t{1} << core;
    }
    return ofi::choose_cards(*all.front(), seat, rails, folder.path().string());
  }
  std::string names_of(const Neighbours& here, int first, int count, std::size_t rails = 0) const {
    std::string names;
    for (const fi_info* card : of(here, first, count, rails).rails) {
      names += card->domain_attr->name;
    }
    return names;
  }

  std::deque<fi_bus_attr> bus;
  std::deque<fid_nic> nics;
  std::vector<ofi::Info> all;
  testing::TemporaryFolder folder;
};

TEST(Ofi, the_nearest_card_is_taken_and_those_as_near_in_turn) {
  const Cards cards({{"a", 0x3b}, {"b", 0x3c}, {"a", 0x3b}, {"c", 0xaf}, {"d", 0xb0}});
  // Bound to cores, whatever the ranks.
  const char* const of_core[] = {"a", "b", "a", "b", "c", "d", "c", "d"};
  for (int core = 0; core < 8; ++core) EXPECT_EQ(cards.names_of({6, 8}, core, 1), of_core[core]);
  EXPECT_EQ(cards.names_of({6, 8}, 0, 2), "a");
  EXPECT_EQ(cards.names_of({6, 8}, 2, 2), "b");
  EXPECT_EQ(cards.names_of({6, 8}, 6, 2), "d");
  EXPECT_EQ(cards.of({6, 8}, 6, 2).about, "card d, in its turn among the nearest of 4");
  // Bound to nothing.
  const char* const of_rank[] = {"a", "b", "c", "d", "a"};
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(cards.names_of({rank, 5}, 0, 8), of_rank[rank]);
}

TEST(Ofi, a_rank_takes_its_share_of_the_cards_as_far_as_they_are_near) {
  const Cards cards({{"a", 0x3b}, {"b", 0x3c}, {"c", 0xaf}, {"d", 0xb0}});
  // Bound to nothing.
  EXPECT_EQ(cards.names_of({0, 1}, 0, 8), "abcd");
  EXPECT_EQ(cards.names_of({0, 2}, 0, 8), "ab");
  EXPECT_EQ(cards.names_of({1, 2}, 0, 8), "cd");
  EXPECT_EQ(cards.names_of({2, 3}, 0, 8), "c");
  // Bound to a socket.
  EXPECT_EQ(cards.names_of({0, 1}, 4, 4), "cd");
  EXPECT_EQ(cards.names_of({0, 2}, 0, 4), "ab");
  EXPECT_EQ(cards.names_of({1, 2}, 4, 4), "cd");
  EXPECT_EQ(cards.of({1, 2}, 4, 4).about, "cards c, d, the nearest of 4");
}

TEST(Ofi, as_many_cards_are_taken_as_are_asked_for) {
  const Cards cards({{"a", 0x3b}, {"b", 0x3c}, {"c", 0xaf}, {"d", 0xb0}});
  EXPECT_EQ(cards.names_of({0, 1}, 0, 8, 1), "a");
  EXPECT_EQ(cards.names_of({1, 4}, 0, 8, 2), "cd");
  EXPECT_EQ(cards.names_of({2, 4}, 0, 8, 2), "ab");
  EXPECT_EQ(cards.names_of({1, 4}, 0, 8, 3), "dab");
  EXPECT_EQ(cards.names_of({0, 1}, 0, 4, 4), "abab") << "one may carry several";
}

TEST(Ofi, cards_that_peers_may_not_reach_are_left_alone) {
  const Cards cards({{"a", 0x3b}, {"b", 0x3c}, {"c", 0xaf}});
  cards.all[1]->fabric_attr->name = ::strdup("another fabric");
  cards.all[2]->addr_format = FI_ADDR_EFA;
  EXPECT_EQ(cards.names_of({1, 8}, 1, 1), "a");
  EXPECT_EQ(cards.names_of({5, 8}, 5, 1), "a");
  EXPECT_EQ(cards.names_of({0, 1}, 0, 8), "a");
}

TEST(Ofi, of_efas_two_networks_the_one_is_taken_that_all_hosts_have) {
  const Cards cards({{"a", 0x3b}, {"a", 0x3b}, {"b", 0x3c}});
  const auto name_fabrics = [&](std::initializer_list<const char*> names) {
    auto card = cards.all.begin();
    for (const char* name : names) {
      std::free((*card)->fabric_attr->name);
      (*card++)->fabric_attr->name = ::strdup(name);
    }
  };
  name_fabrics({"efa-direct", "efa", "efa"});
  EXPECT_EQ(cards.of({0, 1}, 0, 8).rails.front(), cards.all[1].get());
  EXPECT_EQ(cards.names_of({0, 1}, 0, 8), "ab");
  name_fabrics({"efa-direct", "efa-direct", "efa-direct"});
  EXPECT_EQ(cards.of({0, 1}, 0, 8).rails.front(), cards.all[0].get()) << "there is no other";
}

TEST(Ofi, a_card_of_which_nothing_is_known_is_taken_where_there_is_no_other) {
  EXPECT_EQ(Cards({{"a", 0}, {"c", 0xaf}}).of({1, 2}, 5, 1).about, "card c, the nearest of 2");
  EXPECT_EQ(Cards({{"a", 0}, {"b", 0}}).names_of({1, 2}, 5, 1), "b");
  const Cards one({{"a", 0x3b}, {"a", 0x3b}});
  EXPECT_EQ(one.of({1, 2}, 7, 1).rails, std::vector<const fi_info*>{one.all.front().get()});
  EXPECT_EQ(one.of({1, 2}, 7, 1).about, "");
}

TEST(Ofi, an_interface_that_is_not_there_is_refused_where_libfabric_was_asked_for) {
  Config config;
  config.socket_ifname = "=no-such-interface";
  EXPECT_EQ(refusal_of(config), "");  // TCP would do, if it could
  EXPECT_TRUE(ofi::make_transport(context_for(config))->address().empty());
  config.net = "OFI";
  EXPECT_NE(refusal_of(config).find("no-such-interface"), std::string::npos);
}

TEST(Ofi, ranks_with_different_providers_do_not_reach_each_other) {
  const Config tcp = config_for("tcp");
  const Config udp = config_for("udp");
  const auto one = ofi::make_transport(context_for(tcp));
  const auto other = ofi::make_transport(context_for(udp));
  EXPECT_TRUE(one->reaches(one->address()));
  EXPECT_FALSE(one->reaches(other->address()));
  EXPECT_FALSE(other->reaches(one->address()));
}

TEST(Ofi, an_address_says_all_of_every_rail) {
  ofi::Address address = {"efa", 7, true, "here", {}};
  for (const int rail : {0, 1, 2}) {
    SocketAddress beside;
    beside.port = static_cast<std::uint16_t>(100 + rail);
    address.rails.push_back({Bytes(std::size_t{1} + rail, std::byte{9}), beside});
  }
  address.rails[1].beside = std::nullopt;
  const auto parsed = ofi::parse_address(ofi::make_address(address));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->provider, "efa");
  EXPECT_EQ(parsed->format, 7u);
  EXPECT_TRUE(parsed->has_seals);
  EXPECT_EQ(parsed->machine, "here");
  ASSERT_EQ(parsed->rails.size(), 3u);
  for (std::size_t rail = 0; rail < 3; ++rail) {
    EXPECT_EQ(parsed->rails[rail].name, address.rails[rail].name);
    EXPECT_EQ(parsed->rails[rail].beside, address.rails[rail].beside);
  }
  EXPECT_EQ(&parsed->met_by(4), &parsed->rails[1]);
}

TEST(Ofi, what_is_no_whole_address_is_none) {
  const std::vector<ofi::RailAddress> rails = {{Bytes(5), std::nullopt}, {Bytes(3), std::nullopt}};
  ofi::Address address = {"net", 1, false, "", rails};
  const Bytes whole = ofi::make_address(address);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(ofi::parse_address(ByteView(whole).first(bytes))) << bytes;
  }
  Bytes longer = whole;
  longer.push_back({});
  EXPECT_FALSE(ofi::parse_address(longer));
  // Lengths and counts that are not true.
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes changed = whole;
    for (int changes = 0; changes < 3; ++changes) {
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    }
    const auto parsed = ofi::parse_address(changed);
    if (!parsed) continue;
    EXPECT_EQ(ofi::make_address(*parsed).size(), whole.size());
  }
  address.rails.clear();
  EXPECT_FALSE(ofi::parse_address(ofi::make_address(address)));
  address.rails.assign(kMostRails + 1, {Bytes(1), std::nullopt});
  EXPECT_FALSE(ofi::parse_address(ofi::make_address(address)));
}

TEST(Ofi, over_one_interface_there_are_as_many_rails_as_are_asked_for) {
  for (const std::int64_t asked : {0, 1, 3, 4}) {
    Config config = config_for("net");
    config.rails = asked;
    const auto made = ofi::make_transport(context_for(config));
    const auto address = ofi::parse_address(made->address());
    ASSERT_TRUE(address);
    ASSERT_EQ(address->rails.size(), static_cast<std::size_t>(std::max<std::int64_t>(asked, 1)));
    for (const ofi::RailAddress& rail : address->rails) {
      ASSERT_TRUE(rail.beside);
      EXPECT_EQ(*rail.beside, *address->rails.front().beside) << "one interface is watched once";
    }
    if (asked < 2) continue;
    EXPECT_NE(address->rails[0].name, address->rails[1].name);
  }
}

// Ranks of two communicators, who take each other for members of theirs.
TEST(Ofi, who_holds_another_key_is_given_no_memory) {
  const Config config = config_for("tcp");
  TransportContext context = context_for(config);
  context.nranks = 2;
  const auto receiver = ofi::make_transport(context);
  context.rank = 1;
  context.key = random_test_key();
  const auto sender = ofi::make_transport(context);
  const std::vector<Bytes> addresses = {receiver->address(), sender->address()};
  EXPECT_EQ(receiver->attach(addresses, Wait{}), std::vector<bool>(2, true));
  EXPECT_EQ(sender->attach(addresses, Wait{}), std::vector<bool>(2, true));
  const auto send = sender->connect({0, Channel::kCollective});
  const auto recv = receiver->listen({1, Channel::kCollective});
  send->try_acquire(8);
  send->commit(8);
  const Deadline end = Deadline::after_ms(300);
  while (!end.passed()) {
    sender->poll();
    receiver->poll();
  }
  EXPECT_FALSE(receiver->has_come({1, Channel::kCollective}));
  EXPECT_FALSE(send->try_flush());
  EXPECT_TRUE(recv->try_peek().empty());
}

TEST(Ofi, a_control_message_says_who_speaks_to_whom_and_cannot_be_changed) {
  const Key key = random_key();
  ControlWords words;
  words.from = 1;
  words.to = 2;
  words.target.keys.back() = 77;
  const ControlMessage message = seal_control(key, words);
  ASSERT_TRUE(open_control(key, message, 2, 3));
  EXPECT_EQ(open_control(key, message, 2, 3)->target.keys.back(), 77u);
  EXPECT_FALSE(open_control(key, message, 1, 3)) << "it was for another rank";
  EXPECT_FALSE(open_control(key, message, 2, 1)) << "there is no such rank";
  EXPECT_FALSE(open_control(random_key(), message, 2, 3)) << "it was sealed by a stranger";
  for (std::size_t i = 0; i < message.size(); ++i) {
    ControlMessage changed = message;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(open_control(key, changed, 2, 3)) << "byte " << i << " was changed";
  }
  EXPECT_FALSE(open_control(key, ControlMessage{}, 0, 1));
}

TEST(Net, chooses_one_network_and_refuses_what_there_is_not) {
  const auto names_with = [](const char* net) {
    Config config;
    config.net = net;
    std::string names;
    for (const auto& each : built_in_transports(context_for(config))) {
      names += std::string(each->name()) + " ";
    }
    return names;
  };
  EXPECT_EQ(names_with("Socket"), "loopback shm tcp ");
  EXPECT_EQ(names_with("OFI"), "loopback shm ofi ");
  EXPECT_EQ(names_with("AWS Libfabric"), "loopback shm ofi ");
  EXPECT_THROW(names_with("IB"), Error);
}

}  // namespace
}  // namespace catenary::test
