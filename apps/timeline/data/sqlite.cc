// SQLite in one file, with a write-ahead log: readers see one state and never wait for a writer.
#include <sqlite3.h>

#include <unordered_map>

#include "data/sql.h"

namespace timeline {
namespace {

class SqliteConnection : public Connection {
 public:
  explicit SqliteConnection(sqlite3* handle) : handle_(handle) {}
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;
  ~SqliteConnection() override {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(handle_);
  }

  SqlResult Run(std::string_view sql, const std::vector<Value>& parameters) override {
    SqlResult result;
    sqlite3_stmt* statement = Prepare(sql, &result.error);
    if (!statement) return result;
    Bind(statement, parameters);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
      result.rows.push_back(ReadRow(statement));
    if (code == SQLITE_DONE) {
      result.ok = true;
      result.changed = sqlite3_changes64(handle_);
      result.last_id = sqlite3_last_insert_rowid(handle_);
    } else {
      result.error = sqlite3_errmsg(handle_);
      int extended = sqlite3_extended_errcode(handle_);
      result.duplicate =
          extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY;
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result;
  }

  bool BeginWrite() override { return Run("BEGIN IMMEDIATE", {}).ok; }
  bool BeginRead() override { return Run("BEGIN", {}).ok; }
  bool Commit() override { return Run("COMMIT", {}).ok; }
  void Rollback() override { Run("ROLLBACK", {}); }
  bool usable() const override { return sqlite3_get_autocommit(handle_) != 0; }

 private:
  static constexpr std::size_t kMostStatements = 200;

  sqlite3_stmt* Prepare(std::string_view sql, std::string* error) {
    auto found = statements_.find(std::string(sql));
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement,
                           nullptr) != SQLITE_OK) {
      *error = sqlite3_errmsg(handle_);
      return nullptr;
    }
    if (statements_.size() >= kMostStatements) {
      for (auto& [text, old] : statements_) sqlite3_finalize(old);
      statements_.clear();
    }
    statements_.emplace(sql, statement);
    return statement;
  }

  static void Bind(sqlite3_stmt* statement, const std::vector<Value>& parameters) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      int position = static_cast<int>(i) + 1;
      if (const auto* text = std::get_if<std::string>(&parameters[i])) {
        sqlite3_bind_text64(statement, position, text->data(), text->size(), SQLITE_STATIC,
                            SQLITE_UTF8);
      } else {
        sqlite3_bind_int64(statement, position, std::get<std::int64_t>(parameters[i]));
      }
    }
  }

  static Row ReadRow(sqlite3_stmt* statement) {
    Row row;
    int columns = sqlite3_column_count(statement);
    row.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) {
      if (sqlite3_column_type(statement, i) == SQLITE_INTEGER) {
        row.emplace_back(static_cast<std::int64_t>(sqlite3_column_int64(statement, i)));
      } else {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
        row.emplace_back(text ? std::string(text, size) : std::string());
      }
    }
    return row;
  }

  sqlite3* handle_;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

class SqliteDatabase : public Database {
 public:
  explicit SqliteDatabase(std::string file) : file_(std::move(file)) {}

  std::unique_ptr<Connection> Open(std::string* error) override {
    sqlite3* handle = nullptr;
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(file_.c_str(), &handle, kFlags, nullptr) != SQLITE_OK) {
      *error = handle ? sqlite3_errmsg(handle) : "out of memory";
      sqlite3_close(handle);
      return nullptr;
    }
    sqlite3_busy_timeout(handle, 10000);
    auto connection = std::make_unique<SqliteConnection>(handle);
    for (const char* pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
                               "PRAGMA cache_size=-16384", "PRAGMA mmap_size=1073741824"}) {
      auto result = connection->Run(pragma, {});
      if (!result.ok) {
        *error = result.error;
        return nullptr;
      }
    }
    return connection;
  }

  bool is_mariadb() const override { return false; }

 private:
  std::string file_;
};

}  // namespace

std::unique_ptr<Database> MakeSqlite(const std::string& file) {
  return std::make_unique<SqliteDatabase>(file);
}

}  // namespace timeline
