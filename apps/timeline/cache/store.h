// The store of the cache: anything that speaks RESP. A connection runs a list of commands in one go
// and is used by one thread at a time; a Store lends connections and is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace timeline {

using Command = std::vector<std::string>;

struct Reply {
  enum class Kind { kNil, kInteger, kText, kError, kArray };
  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text;
  std::vector<Reply> elements;

  bool is_nil() const { return kind == Kind::kNil; }
  bool is_error() const { return kind == Kind::kError; }
};

class StoreConnection {
 public:
  virtual ~StoreConnection() = default;
  // Sends all commands, then reads a reply to each. False when the store did not answer all of
  // them; the connection is of no use then.
  virtual bool Run(const std::vector<Command>& commands, std::vector<Reply>* replies) = 0;
  virtual bool usable() const = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  class Lease {
   public:
    Lease(Store* store, std::unique_ptr<StoreConnection> connection)
        : store_(store), connection_(std::move(connection)) {}
    ~Lease() {
      if (connection_) store_->Return(std::move(connection_));
    }
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    explicit operator bool() const { return connection_ != nullptr; }
    StoreConnection* operator->() const { return connection_.get(); }
    StoreConnection& operator*() const { return *connection_; }

   private:
    Store* store_;
    std::unique_ptr<StoreConnection> connection_;
  };

  Lease Borrow();

  // Changes whenever a connection was opened or lost, that is, whenever the server at the other end
  // may be another one than before, or may have lost what it was told.
  std::uint64_t generation() const { return generation_.load(); }
  // Commands sent so far; a test sees by it that a cache that is off is not asked.
  std::uint64_t asked() const { return asked_.load(); }

 protected:
  virtual std::unique_ptr<StoreConnection> Open() = 0;
  std::atomic<std::uint64_t> asked_{0};

 private:
  friend class Lease;
  void Return(std::unique_ptr<StoreConnection> connection);

  std::mutex mutex_;
  std::vector<std::unique_ptr<StoreConnection>> idle_;  // guarded by mutex_
  std::int64_t retry_after_ = 0;                        // guarded by mutex_
  std::atomic<std::uint64_t> generation_{1};
};

// "HOST:PORT" or the path of a unix socket.
std::unique_ptr<Store> MakeRespStore(const std::string& address);

}  // namespace timeline
