// A small door to a relational database: prepared statements only, errors as values. A Connection
// is used by one thread at a time; a Pool hands them out and is thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace timeline {

using Value = std::variant<std::int64_t, std::string>;
using Row = std::vector<Value>;

inline std::int64_t IntegerOf(const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number ? *number : 0;
}
inline const std::string& TextOf(const Value& value) {
  static const std::string kEmpty;
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : kEmpty;
}

struct SqlResult {
  bool ok = false;
  bool duplicate = false;  // a unique key refused the row
  std::string error;
  std::vector<Row> rows;
  std::int64_t changed = 0;
  std::int64_t last_id = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  // Runs one statement with its parameters. Statements are prepared once per connection and text.
  virtual SqlResult Run(std::string_view sql, const std::vector<Value>& parameters = {}) = 0;
  // A transaction that will write; writers come one after another.
  virtual bool BeginWrite() = 0;
  // A transaction that reads one state of the database.
  virtual bool BeginRead() = 0;
  virtual bool Commit() = 0;
  virtual void Rollback() = 0;
  // False after an error that leaves the connection unusable.
  virtual bool usable() const = 0;
};

// Where the database is and how to speak with it.
class Database {
 public:
  virtual ~Database() = default;
  virtual std::unique_ptr<Connection> Open(std::string* error) = 0;
  virtual bool is_mariadb() const = 0;
};

// "FILE", "sqlite:FILE", "mariadb://USER[:PASSWORD]@HOST[:PORT]/NAME" or
// "mariadb://USER[:PASSWORD]@/NAME?socket=PATH". Null with an error for anything else.
std::unique_ptr<Database> MakeDatabase(const std::string& address, std::string* error);
std::unique_ptr<Database> MakeSqlite(const std::string& file);
std::unique_ptr<Database> MakeMariadb(const std::string& address, std::string* error);

class Pool {
 public:
  Pool(Database* database, int most) : database_(database), most_(most) {}

  // A connection lent until the lease ends; empty when none can be opened.
  class Lease {
   public:
    Lease(Pool* pool, std::unique_ptr<Connection> connection)
        : pool_(pool), connection_(std::move(connection)) {}
    ~Lease() {
      if (pool_) pool_->Return(std::move(connection_));
    }
    Lease(Lease&& other) noexcept : pool_(other.pool_), connection_(std::move(other.connection_)) {
      other.pool_ = nullptr;
    }
    Lease& operator=(Lease&&) = delete;
    explicit operator bool() const { return connection_ != nullptr; }
    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> connection_;
  };

  Lease Borrow();
  bool is_mariadb() const { return database_->is_mariadb(); }

 private:
  void Return(std::unique_ptr<Connection> connection);

  Database* database_;
  const int most_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;  // guarded by mutex_
  int open_ = 0;                                   // guarded by mutex_
};

// "?,?,…" with room for count values, rounded up so that few different statements are prepared.
// PadTo repeats the last value until they fit.
std::size_t RoundedCount(std::size_t count);
std::string Placeholders(std::size_t count);
void AppendPadded(const std::vector<std::int64_t>& ids, std::vector<Value>* parameters);

}  // namespace timeline
