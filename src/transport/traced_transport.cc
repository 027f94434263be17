#include "src/transport/traced_transport.h"

#include <atomic>

#include "src/transport/forwarding_links.h"

namespace catenary {

// Written by the thread of the link, read by any.
struct TracedTransport::Counters {
  Counters(const LinkSpec& link, bool is_sender) : spec(link), sends(is_sender) {}

  const LinkSpec spec;
  const bool sends;
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> empties{0};

  // Only one thread writes, so a load and a store suffice. Relaxed: counts order nothing.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void count_message(std::size_t message_bytes) {
    add(messages, 1);
    add(bytes, message_bytes);
  }
  template <typename Span>
  Span count_if_empty(Span span) {
    if (span.empty()) add(empties, 1);
    return span;
  }
};

class TracedTransport::CountingSendLink final : public ForwardingSendLink {
 public:
  CountingSendLink(std::unique_ptr<SendLink> inside, Counters& counters)
      : ForwardingSendLink(std::move(inside)), counters_(counters) {}

  ByteSpan try_acquire(std::size_t bytes) override {
    return counters_.count_if_empty(inside().try_acquire(bytes));
  }
  void commit(std::size_t bytes) override {
    inside().commit(bytes);
    counters_.count_message(bytes);
  }
  void commit_from(std::size_t skip, ByteView data) override {
    inside().commit_from(skip, data);
    counters_.count_message(skip + data.size());
  }
  void commit_in_place(std::size_t skip, ByteView data) override {
    inside().commit_in_place(skip, data);
    counters_.count_message(skip + data.size());
  }

 private:
  Counters& counters_;
};

class TracedTransport::CountingRecvLink final : public ForwardingRecvLink {
 public:
  CountingRecvLink(std::unique_ptr<RecvLink> inside, Counters& counters)
      : ForwardingRecvLink(std::move(inside)), counters_(counters) {}

  ByteView try_peek() override {
    const ByteView view = counters_.count_if_empty(inside().try_peek());
    peeked_bytes_ = view.size();
    return view;
  }
  void release() override {
    inside().release();
    counters_.count_message(peeked_bytes_);
  }

 private:
  Counters& counters_;
  std::size_t peeked_bytes_ = 0;
};

TracedTransport::TracedTransport(std::unique_ptr<Transport> inside) : inside_(std::move(inside)) {}
TracedTransport::~TracedTransport() = default;

std::vector<LinkCounts> TracedTransport::counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<LinkCounts> result;
  for (const auto& each : counters_) {
    result.push_back({each->spec.peer, each->spec.channel, each->sends,
                      each->messages.load(std::memory_order_relaxed),
                      each->bytes.load(std::memory_order_relaxed),
                      each->empties.load(std::memory_order_relaxed)});
  }
  return result;
}

std::unique_ptr<SendLink> TracedTransport::connect(const LinkSpec& spec) {
  auto link = inside_->connect(spec);
  return std::make_unique<CountingSendLink>(std::move(link), add_counters(spec, true));
}

std::unique_ptr<RecvLink> TracedTransport::listen(const LinkSpec& spec) {
  auto link = inside_->listen(spec);
  return std::make_unique<CountingRecvLink>(std::move(link), add_counters(spec, false));
}

TracedTransport::Counters& TracedTransport::add_counters(const LinkSpec& spec, bool sends) {
  const std::lock_guard lock(mutex_);
  counters_.push_back(std::make_unique<Counters>(spec, sends));
  return *counters_.back();
}

}  // namespace catenary
