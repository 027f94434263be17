// What the tests of the control plane share: a loopback configuration, ranks as threads, errors as
// values.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/error.h"
#include "src/bootstrap/membership.h"
#include "src/bootstrap/tcp.h"

namespace catenary {

inline Config loopback() {
  Config config;
  config.socket_ifname = "lo";
  config.socket_family = "AF_INET";
  return config;
}

// A loopback address where nobody listens, for NCCL_COMM_ID.
inline std::string free_address() {
  SocketAddress address = SocketAddress::resolve("127.0.0.1:1", AF_INET);
  address.port = 0;
  listen_on(address);
  return address.text();
}

inline Wait within_ms(std::int64_t ms) { return {Deadline::after_ms(ms), nullptr}; }

// Runs body(rank) on a thread for each rank. The error that each ended with, if any.
inline std::vector<std::optional<Error>> run_ranks(int nranks,
                                                   const std::function<void(int)>& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(nranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline void expect_no_errors(const std::vector<std::optional<Error>>& errors) {
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_FALSE(errors[rank].has_value()) << "rank " << rank << ": " << errors[rank]->what();
  }
}

inline void expect_error(const std::optional<Error>& error, ErrorCode code,
                         const std::string& part) {
  ASSERT_TRUE(error.has_value()) << "no error, expected one with: " << part;
  EXPECT_EQ(static_cast<int>(error->code()), static_cast<int>(code)) << error->what();
  EXPECT_NE(std::string(error->what()).find(part), std::string::npos) << error->what();
}

// The fault that the membership comes to know within a second.
inline std::optional<Error> fault_soon(Membership& membership, std::int64_t ms = 1000) {
  const Deadline deadline = Deadline::after_ms(ms);
  while (!deadline.passed()) {
    if (auto fault = membership.poll()) return fault;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

}  // namespace catenary
