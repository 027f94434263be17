#include "src/transport/traced_transport.h"

#include <atomic>

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

class TracedTransport::CountingSendLink final : public SendLink {
 public:
  CountingSendLink(std::unique_ptr<SendLink> inside, Counters& counters)
      : inside_(std::move(inside)), counters_(counters) {}

  ByteSpan try_acquire(std::size_t bytes) override {
    return counters_.count_if_empty(inside_->try_acquire(bytes));
  }
  void write(std::byte* at, ByteView data) override { inside_->write(at, data); }
  bool writes_past_caches(std::size_t bytes) const noexcept override {
    return inside_->writes_past_caches(bytes);
  }
  void commit(std::size_t bytes) override {
    inside_->commit(bytes);
    counters_.count_message(bytes);
  }
  void commit_from(std::size_t skip, ByteView data) override {
    inside_->commit_from(skip, data);
    counters_.count_message(skip + data.size());
  }
  void commit_in_place(std::size_t skip, ByteView data) override {
    inside_->commit_in_place(skip, data);
    counters_.count_message(skip + data.size());
  }
  bool sends_in_place(ByteView data) override { return inside_->sends_in_place(data); }
  bool try_flush() override { return inside_->try_flush(); }
  bool spares_copy() const noexcept override { return inside_->spares_copy(); }
  std::optional<Loan> try_lend(ByteView memory, const Terms& terms) override {
    return inside_->try_lend(memory, terms);
  }
  void withdraw() noexcept override { inside_->withdraw(); }
  bool is_written_to() noexcept override { return inside_->is_written_to(); }

 private:
  std::unique_ptr<SendLink> inside_;
  Counters& counters_;
};

class TracedTransport::CountingRecvLink final : public RecvLink {
 public:
  CountingRecvLink(std::unique_ptr<RecvLink> inside, Counters& counters)
      : inside_(std::move(inside)), counters_(counters) {}

  ByteView try_peek() override {
    const ByteView view = counters_.count_if_empty(inside_->try_peek());
    peeked_bytes_ = view.size();
    return view;
  }
  void release() override {
    inside_->release();
    counters_.count_message(peeked_bytes_);
  }
  ByteView borrow(const Loan& loan, std::byte* into) override {
    return inside_->borrow(loan, into);
  }
  bool still_lent() const override { return inside_->still_lent(); }
  bool reaches_results() const noexcept override { return inside_->reaches_results(); }
  std::byte* place_for_result(const Loan& loan) override { return inside_->place_for_result(loan); }
  bool try_begin_writing() override { return inside_->try_begin_writing(); }
  void write_result(std::byte* at, ByteView data, bool past_caches) override {
    inside_->write_result(at, data, past_caches);
  }
  bool streams_results(std::size_t bytes) const noexcept override {
    return inside_->streams_results(bytes);
  }
  void end_writing() override { inside_->end_writing(); }

 private:
  std::unique_ptr<RecvLink> inside_;
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
