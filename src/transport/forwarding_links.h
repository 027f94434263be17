// Links that pass everything on to another one: what decorators of transports change they override.
//
// Threads, waiting and failure: those of the link inside, which is theirs.
#pragma once

#include <memory>
#include <utility>

#include "src/transport/transport.h"

namespace catenary {

class ForwardingSendLink : public SendLink {
 public:
  explicit ForwardingSendLink(std::unique_ptr<SendLink> inside) : inside_(std::move(inside)) {}

  ByteSpan try_acquire(std::size_t bytes) override { return inside_->try_acquire(bytes); }
  void write(std::byte* at, ByteView data) override { inside_->write(at, data); }
  bool writes_past_caches(std::size_t bytes) const noexcept override {
    return inside_->writes_past_caches(bytes);
  }
  void commit(std::size_t bytes) override { inside_->commit(bytes); }
  void commit_from(std::size_t skip, ByteView data) override { inside_->commit_from(skip, data); }
  bool spares_copy() const noexcept override { return inside_->spares_copy(); }
  void commit_in_place(std::size_t skip, ByteView memory) override {
    inside_->commit_in_place(skip, memory);
  }
  bool sends_in_place(ByteView memory) override { return inside_->sends_in_place(memory); }
  void prepare(std::size_t bytes) const noexcept override { inside_->prepare(bytes); }
  bool try_flush() override { return inside_->try_flush(); }
  bool is_flushed_by_commit() const noexcept override { return inside_->is_flushed_by_commit(); }
  std::optional<Loan> try_lend(ByteView memory, const Terms& terms) override {
    return inside_->try_lend(memory, terms);
  }
  Stage* stage() override { return inside_->stage(); }
  Loan lend_staged(ByteView memory) override { return inside_->lend_staged(memory); }
  void withdraw() noexcept override { inside_->withdraw(); }
  bool is_written_to() noexcept override { return inside_->is_written_to(); }
  bool try_help(const Combination& combination) override { return inside_->try_help(combination); }

 protected:
  SendLink& inside() { return *inside_; }

 private:
  std::unique_ptr<SendLink> inside_;
};

class ForwardingRecvLink : public RecvLink {
 public:
  explicit ForwardingRecvLink(std::unique_ptr<RecvLink> inside) : inside_(std::move(inside)) {}

  ByteView try_peek() override { return inside_->try_peek(); }
  void release() override { inside_->release(); }
  ByteView borrow(const Loan& loan, std::byte* into, bool together) override {
    return inside_->borrow(loan, into, together);
  }
  void read(std::byte* to, ByteView from) override { inside_->read(to, from); }
  bool still_lent() const override { return inside_->still_lent(); }
  Copied copy_together(ByteView borrowed, const Taking& taking) override {
    return inside_->copy_together(borrowed, taking);
  }
  bool is_helped() noexcept override { return inside_->is_helped(); }
  void forbid_help() noexcept override { inside_->forbid_help(); }
  bool reaches_results() const noexcept override { return inside_->reaches_results(); }
  std::byte* place_for_result(const Loan& loan) override { return inside_->place_for_result(loan); }
  bool try_begin_writing(ByteView part) override { return inside_->try_begin_writing(part); }
  void write_result(std::byte* at, ByteView data, bool past_caches) override {
    inside_->write_result(at, data, past_caches);
  }
  bool streams_results(std::size_t bytes) const noexcept override {
    return inside_->streams_results(bytes);
  }
  void end_writing() override { inside_->end_writing(); }

 protected:
  RecvLink& inside() { return *inside_; }

 private:
  std::unique_ptr<RecvLink> inside_;
};

}  // namespace catenary
