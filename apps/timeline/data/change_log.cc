#include "data/change_log.h"

#include <algorithm>

namespace timeline {

bool ChangeLog::Begin(Connection& connection, std::int64_t now, std::int64_t* position,
                      std::int64_t* created) {
  if (!connection.BeginWrite()) return false;
  bool locked = connection.Run("UPDATE state SET position = position + 1 WHERE id = 1").ok;
  auto state = connection.Run("SELECT position, lastCreated FROM state WHERE id = 1");
  if (!locked || state.rows.empty()) {
    connection.Rollback();
    return false;
  }
  *position = IntegerOf(state.rows[0][0]);
  *created = std::max(now, IntegerOf(state.rows[0][1]) + 1);
  return true;
}

bool ChangeLog::Commit(Connection& connection, const Change& change) {
  bool ok = connection
                .Run(
                    "INSERT INTO changes (position, kind, actor, subject, detail) VALUES "
                    "(?, ?, ?, ?, ?)",
                    {change.position, static_cast<std::int64_t>(change.kind), change.actor,
                     change.subject, change.detail})
                .ok;
  if (ok && change.position % 1000 == 0) {
    ok = connection.Run("DELETE FROM changes WHERE position <= ?", {change.position - kKept}).ok;
  }
  if (ok && connection.Commit()) return true;
  connection.Rollback();
  return false;
}

std::int64_t ChangeLog::Position(Connection& connection) {
  auto state = connection.Run("SELECT position FROM state WHERE id = 1");
  return state.rows.empty() ? -1 : IntegerOf(state.rows[0][0]);
}

std::vector<Change> ChangeLog::After(Connection& connection, std::int64_t position, int most) {
  auto result = connection.Run(
      "SELECT position, kind, actor, subject, detail FROM changes WHERE position > ? ORDER BY "
      "position LIMIT ?",
      {position, static_cast<std::int64_t>(most)});
  std::vector<Change> changes;
  for (const auto& row : result.rows) {
    changes.push_back({IntegerOf(row[0]), static_cast<ChangeKind>(IntegerOf(row[1])),
                       IntegerOf(row[2]), IntegerOf(row[3]), TextOf(row[4])});
  }
  return changes;
}

}  // namespace timeline
