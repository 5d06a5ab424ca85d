// What an administrator can change while the application runs; kept in the database. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "data/sql.h"

namespace timeline {

// How the store follows a change of the database.
enum class Strategy {
  kUpdate,  // the keys are changed as the database was
  kDelete,  // the keys are deleted; the next read fills them
};

struct Settings {
  std::atomic<bool> use_cache{true};
  std::atomic<std::int64_t> front_page{25};  // posts a page; -1: all
  std::atomic<std::int64_t> profile_page{25};
  std::atomic<Strategy> strategy{Strategy::kUpdate};

  void Load(Connection& connection);
  // Writes these to the database, and has them from then on.
  bool Change(Connection& connection, bool cache, std::int64_t front, std::int64_t profile,
              Strategy way);

 private:
  std::mutex mutex_;  // held from reading or writing the database until all fields have its values
};

}  // namespace timeline
