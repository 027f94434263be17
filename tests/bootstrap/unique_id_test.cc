#include "src/bootstrap/unique_id.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

template <typename Call>
std::optional<Error> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

Rendezvous sample() {
  Rendezvous rendezvous;
  rendezvous.root = SocketAddress::resolve("[fe80::1]:4711", AF_UNSPEC);
  rendezvous.root.scope = 3;
  rendezvous.fixed_address = true;
  fill_random(rendezvous.job);
  rendezvous.secret = random_key();
  return rendezvous;
}

Config with_comm_id(const std::string& comm_id, const std::string& secret_file = "") {
  Config config = loopback();
  config.comm_id = comm_id;
  config.socket_family = "";
  config.secret_file = secret_file;
  return config;
}

class SecretFile {
 public:
  explicit SecretFile(const std::string& content) {
    const int fd = ::mkstemp(path_);
    EXPECT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path_) << content;
  }
  ~SecretFile() { std::remove(path_); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/catenary-secret-XXXXXX";
};

TEST(UniqueId, decodes_to_what_was_encoded) {
  const Rendezvous before = sample();
  const Rendezvous after = decode_unique_id(encode_unique_id(before));
  EXPECT_EQ(after.root, before.root);
  EXPECT_EQ(after.fixed_address, before.fixed_address);
  EXPECT_EQ(after.job, before.job);
  EXPECT_EQ(after.secret, before.secret);
}

TEST(UniqueId, zeros_are_no_id) {
  expect_error(error_of([] { decode_unique_id(UniqueId{}); }), ErrorCode::kInvalidArgument,
               "not an id made by ncclGetUniqueId");
}

TEST(UniqueId, every_changed_bit_is_noticed) {
  const UniqueId good = encode_unique_id(sample());
  for (std::size_t bit = 0; bit < good.bytes.size() * 8; ++bit) {
    UniqueId bad = good;
    bad.bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_TRUE(error_of([&] { decode_unique_id(bad); }).has_value()) << bit;
  }
}

TEST(UniqueId, two_ids_differ_in_secret_and_port) {
  const Rendezvous a = decode_unique_id(create_unique_id(loopback()));
  const Rendezvous b = decode_unique_id(create_unique_id(loopback()));
  EXPECT_NE(a.secret, b.secret);
  EXPECT_NE(a.job, b.job);
  EXPECT_NE(a.root.port, b.root.port);
}

TEST(UniqueId, listens_on_the_chosen_interface_only) {
  const Rendezvous rendezvous = decode_unique_id(create_unique_id(loopback()));
  EXPECT_EQ(rendezvous.root.host_text(), "127.0.0.1");
  EXPECT_FALSE(rendezvous.fixed_address);
}

TEST(UniqueId, comm_id_gives_every_rank_the_same_id) {
  const Config config = with_comm_id("127.0.0.1:7001");
  EXPECT_EQ(create_unique_id(config).bytes, create_unique_id(config).bytes);
  EXPECT_TRUE(decode_unique_id(create_unique_id(config)).fixed_address);
}

TEST(UniqueId, comm_id_takes_ipv6_and_names) {
  EXPECT_EQ(decode_unique_id(create_unique_id(with_comm_id("[::1]:7001"))).root.text(),
            "[::1]:7001");
  const auto named = decode_unique_id(create_unique_id(with_comm_id("localhost:7001"))).root;
  EXPECT_TRUE(named.host_text() == "127.0.0.1" || named.host_text() == "::1") << named.text();
}

TEST(UniqueId, a_bad_comm_id_is_reported) {
  for (const char* bad : {"", ":", "host", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:12x",
                          "::1:80", "[1.2.3:80", ":80"}) {
    const auto error = error_of([&] { SocketAddress::resolve(bad, AF_UNSPEC); });
    EXPECT_TRUE(error.has_value()) << bad;
  }
  EXPECT_TRUE(error_of([] { create_unique_id(with_comm_id("no port")); }).has_value());
}

TEST(UniqueId, the_secret_file_decides_the_secret) {
  const SecretFile one("one");
  const SecretFile two("two");
  const auto secret = [](const std::string& path) {
    return decode_unique_id(create_unique_id(with_comm_id("127.0.0.1:7001", path))).secret;
  };
  EXPECT_EQ(secret(one.path()), secret(one.path()));
  EXPECT_NE(secret(one.path()), secret(two.path()));
  EXPECT_NE(secret(one.path()), secret(""));
}

TEST(UniqueId, a_secret_file_that_is_missing_or_empty_is_an_error) {
  const SecretFile empty("");
  expect_error(error_of([&] { create_unique_id(with_comm_id("127.0.0.1:7001", empty.path())); }),
               ErrorCode::kInvalidUsage, "is empty");
  expect_error(error_of([&] { create_unique_id(with_comm_id("127.0.0.1:7001", "/no/such")); }),
               ErrorCode::kSystem, "cannot read /no/such");
}

}  // namespace
}  // namespace catenary
