#include "data/sql.h"

namespace timeline {

std::unique_ptr<Database> MakeDatabase(const std::string& address, std::string* error) {
  if (address.rfind("mariadb://", 0) == 0) return MakeMariadb(address, error);
  if (address.rfind("sqlite:", 0) == 0) return MakeSqlite(address.substr(7));
  if (address.empty() || address.find("://") != std::string::npos) {
    *error = "a database is FILE, sqlite:FILE or mariadb://USER[:PASSWORD]@HOST[:PORT]/NAME";
    return nullptr;
  }
  return MakeSqlite(address);
}

Pool::Lease Pool::Borrow() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !idle_.empty() || open_ < most_; });
  if (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return Lease(this, std::move(connection));
  }
  ++open_;
  lock.unlock();
  std::string error;
  return Lease(this, database_->Open(&error));
}

void Pool::Return(std::unique_ptr<Connection> connection) {
  {
    std::lock_guard lock(mutex_);
    if (connection && connection->usable()) {
      idle_.push_back(std::move(connection));
    } else {
      --open_;
    }
  }
  returned_.notify_one();
}

std::size_t RoundedCount(std::size_t count) {
  std::size_t rounded = 1;
  while (rounded < count) rounded += rounded < 32 ? rounded : rounded / 2;
  return rounded;
}

std::string Placeholders(std::size_t count) {
  std::string text = "?";
  for (std::size_t i = 1; i < RoundedCount(count); ++i) text += ",?";
  return text;
}

void AppendPadded(const std::vector<std::int64_t>& ids, std::vector<Value>* parameters) {
  for (auto id : ids) parameters->emplace_back(id);
  for (std::size_t i = ids.size(); i < RoundedCount(ids.size()); ++i) {
    parameters->emplace_back(ids.empty() ? -1 : ids.back());
  }
}

}  // namespace timeline
