#include "src/bootstrap/socket_interface.h"

#include <algorithm>

#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

SocketInterface interface(const std::string& name, const std::string& host,
                          std::uint32_t scope = 0) {
  SocketInterface result = {name, SocketAddress::resolve(host + ":1", AF_UNSPEC)};
  result.address.port = 0;
  result.address.scope = scope;
  return result;
}

const std::vector<SocketInterface>& machine() {
  static const std::vector<SocketInterface> all = {
      interface("lo", "127.0.0.1"),       interface("docker0", "172.17.0.1"),
      interface("eth0", "[fe80::2]", 4),  interface("eth0", "192.0.2.2"),
      interface("eth10", "198.51.100.7"), interface("ib0", "[2001:db8::5]"),
      interface("lo", "[::1]"),
  };
  return all;
}

std::string choose(const std::string& names, const std::string& family = "") {
  const SocketInterface chosen = choose_socket_interface(machine(), names, family);
  return chosen.name + " " + chosen.address.host_text();
}

std::optional<Error> refusal(const std::vector<SocketInterface>& all, const std::string& names,
                             const std::string& family) {
  try {
    choose_socket_interface(all, names, family);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(SocketInterface, a_real_one_is_preferred) { EXPECT_EQ(choose(""), "eth0 192.0.2.2"); }

TEST(SocketInterface, several_are_as_good_if_they_have_one_family) {
  const auto names_of = [](const std::string& names, const std::string& family = "") {
    std::string chosen;
    for (const SocketInterface& each : choose_socket_interfaces(machine(), names, family)) {
      chosen += each.name + " ";
    }
    return chosen;
  };
  EXPECT_EQ(names_of(""), "eth0 eth10 ");
  EXPECT_EQ(names_of("ib,eth10"), "eth10 ");
  EXPECT_EQ(names_of("eth", "AF_INET6"), "eth0 ");
  EXPECT_EQ(names_of("lo"), "lo ");
  EXPECT_EQ(names_of("docker"), "docker0 ");
}

TEST(SocketInterface, names_are_prefixes) {
  EXPECT_EQ(choose("eth1"), "eth10 198.51.100.7");
  EXPECT_EQ(choose("docker"), "docker0 172.17.0.1");
  EXPECT_EQ(choose("foo,lo"), "lo 127.0.0.1");
}

TEST(SocketInterface, an_equals_sign_wants_exact_names) {
  EXPECT_EQ(choose("=eth10,ib0"), "eth10 198.51.100.7");
  expect_error(refusal(machine(), "=eth", ""), ErrorCode::kInvalidUsage, "=eth");
}

TEST(SocketInterface, a_caret_excludes) {
  EXPECT_EQ(choose("^eth"), "ib0 2001:db8::5");
  EXPECT_EQ(choose("^eth,ib"), "docker0 172.17.0.1");
  EXPECT_EQ(choose("^=eth0,ib0"), "eth10 198.51.100.7");
}

TEST(SocketInterface, the_family_is_heeded) {
  EXPECT_EQ(choose("", "AF_INET6"), "ib0 2001:db8::5");
  EXPECT_EQ(choose("lo", "AF_INET6"), "lo ::1");
  EXPECT_EQ(choose("eth0", "AF_INET6"), "eth0 fe80::2");
  expect_error(refusal(machine(), "", "AF_UNIX"), ErrorCode::kInvalidUsage, "AF_UNIX");
}

TEST(SocketInterface, loopback_does_where_there_is_nothing_else) {
  EXPECT_EQ(choose_socket_interface({interface("lo", "127.0.0.1")}, "", "").name, "lo");
}

TEST(SocketInterface, the_error_lists_what_there_is) {
  expect_error(refusal(machine(), "wlan", ""), ErrorCode::kInvalidUsage, "eth10 (198.51.100.7)");
  expect_error(refusal({}, "", ""), ErrorCode::kInvalidUsage, "none");
}

TEST(SocketInterface, this_machine_has_loopback) {
  const auto all = list_socket_interfaces();
  EXPECT_TRUE(std::ranges::any_of(all, [](const auto& each) { return each.name == "lo"; }));
}

}  // namespace
}  // namespace catenary
