#include "data/schema.h"

#include <fmt/format.h>
#include <sodium.h>

namespace timeline {
namespace {

std::string RandomHex(std::size_t bytes) {
  std::string raw(bytes, '\0'), hex(bytes * 2 + 1, '\0');
  randombytes_buf(raw.data(), raw.size());
  sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(raw.data()), bytes);
  hex.pop_back();
  return hex;
}

std::vector<std::string> Tables(bool mariadb, Layout layout) {
  const char* id =
      mariadb ? "BIGINT AUTO_INCREMENT PRIMARY KEY" : "INTEGER PRIMARY KEY AUTOINCREMENT";
  const char* end = mariadb ? ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4" : ")";
  std::string columns = layout == Layout::kDocument
                            ? ", followingIds MEDIUMTEXT NOT NULL, followerIds MEDIUMTEXT NOT NULL"
                            : "";
  std::vector<std::string> tables = {
      fmt::format(
          "CREATE TABLE IF NOT EXISTS meta (name VARCHAR(64) NOT NULL PRIMARY KEY, value TEXT "
          "NOT NULL{}",
          end),
      fmt::format(
          "CREATE TABLE IF NOT EXISTS state (id BIGINT NOT NULL PRIMARY KEY, position BIGINT "
          "NOT NULL, lastCreated BIGINT NOT NULL{}",
          end),
      fmt::format("CREATE TABLE IF NOT EXISTS changes (position BIGINT NOT NULL PRIMARY KEY, kind "
                  "BIGINT NOT NULL, actor BIGINT NOT NULL, subject BIGINT NOT NULL, detail "
                  "VARCHAR(128) NOT NULL{}",
                  end),
      fmt::format("CREATE TABLE IF NOT EXISTS users (id {}, email VARCHAR(254) NOT NULL UNIQUE, "
                  "password VARCHAR(128) NOT NULL, displayName VARCHAR(200) NOT NULL, aboutMe TEXT "
                  "NOT NULL, picture VARCHAR(500) NOT NULL, followers BIGINT NOT NULL, following "
                  "BIGINT NOT NULL, administrator BIGINT NOT NULL{}{}",
                  id, columns, end),
      fmt::format(
          "CREATE TABLE IF NOT EXISTS posts (id {}, title VARCHAR(400) NOT NULL, message TEXT "
          "NOT NULL, ownerUserId BIGINT NOT NULL, createdTime BIGINT NOT NULL{}",
          id, end),
      fmt::format(
          "CREATE TABLE IF NOT EXISTS sessions (token VARCHAR(64) NOT NULL PRIMARY KEY, userId "
          "BIGINT NOT NULL, expires BIGINT NOT NULL{}",
          end)};
  if (layout == Layout::kIndexed) {
    tables.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS follows (follower BIGINT NOT NULL, followee BIGINT NOT "
        "NULL, PRIMARY KEY (follower, followee){}{}",
        end, mariadb ? "" : " WITHOUT ROWID"));
  }
  return tables;
}

bool RunAll(Connection& connection, const std::vector<std::string>& statements,
            std::string* error) {
  for (const auto& statement : statements) {
    auto result = connection.Run(statement);
    if (!result.ok) {
      *error = result.error;
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Layout> LayoutOf(std::string_view name) {
  if (name == "document") return Layout::kDocument;
  if (name == "indexed") return Layout::kIndexed;
  return std::nullopt;
}

const char* NameOf(Layout layout) { return layout == Layout::kDocument ? "document" : "indexed"; }

std::string MetaOf(Connection& connection, const std::string& name) {
  auto result = connection.Run("SELECT value FROM meta WHERE name = ?", {name});
  return result.rows.empty() ? "" : TextOf(result.rows[0][0]);
}

bool SetMeta(Connection& connection, const std::string& name, const std::string& value) {
  return connection.Run("REPLACE INTO meta (name, value) VALUES (?, ?)", {name, value}).ok;
}

bool CreateIndexes(Connection& connection, Layout layout, std::string* error) {
  if (layout == Layout::kDocument) return true;
  return RunAll(
      connection,
      {"CREATE INDEX IF NOT EXISTS posts_by_owner ON posts (ownerUserId, createdTime, id)",
       "CREATE INDEX IF NOT EXISTS follows_back ON follows (followee, follower)"},
      error);
}

bool PrepareSchema(Connection& connection, bool mariadb, std::optional<Layout> wanted,
                   Layout* layout, std::string* error) {
  auto stored = LayoutOf(MetaOf(connection, "layout"));
  if (stored && wanted && *stored != *wanted) {
    *error = fmt::format("this database has the {} layout", NameOf(*stored));
    return false;
  }
  *layout = stored ? *stored : wanted.value_or(Layout::kIndexed);
  if (stored) return true;
  if (!RunAll(connection, Tables(mariadb, *layout), error)) return false;
  if (!CreateIndexes(connection, *layout, error)) return false;
  auto result = connection.Run("REPLACE INTO state (id, position, lastCreated) VALUES (1, 0, 0)");
  if (!result.ok || !SetMeta(connection, "identity", RandomHex(8)) ||
      !SetMeta(connection, "secret", RandomHex(32)) ||
      !SetMeta(connection, "layout", NameOf(*layout))) {
    *error = "the database cannot be written: " + result.error;
    return false;
  }
  return true;
}

}  // namespace timeline
