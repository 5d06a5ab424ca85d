// MariaDB through its C client: binary protocol, prepared statements. Reading transactions see one
// state (REPEATABLE READ with a consistent snapshot).
#include <mysql.h>

#include <cstring>
#include <unordered_map>

#include "data/sql.h"

namespace timeline {
namespace {

constexpr unsigned kDuplicateEntry = 1062;
constexpr unsigned kFirstClientError = 2000;  // the connection itself is broken

bool IsInteger(enum_field_types type) {
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_LONG ||
         type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_INT24;
}

// The columns of one result, bound once the rows are stored and their longest texts known.
class Columns {
 public:
  Columns(MYSQL_STMT* statement, MYSQL_RES* meta) {
    unsigned count = mysql_num_fields(meta);
    MYSQL_FIELD* fields = mysql_fetch_fields(meta);
    binds_.resize(count);
    numbers_.resize(count);
    texts_.resize(count);
    lengths_.resize(count);
    nulls_.resize(count);
    for (unsigned i = 0; i < count; ++i) {
      std::memset(&binds_[i], 0, sizeof(MYSQL_BIND));
      binds_[i].is_null = &nulls_[i];
      binds_[i].length = &lengths_[i];
      if (IsInteger(fields[i].type)) {
        binds_[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds_[i].buffer = &numbers_[i];
      } else {
        texts_[i].resize(fields[i].max_length + 1);
        binds_[i].buffer_type = MYSQL_TYPE_STRING;
        binds_[i].buffer = texts_[i].data();
        binds_[i].buffer_length = texts_[i].size();
      }
    }
    mysql_stmt_bind_result(statement, binds_.data());
  }

  Row Read() const {
    Row row;
    row.reserve(binds_.size());
    for (std::size_t i = 0; i < binds_.size(); ++i) {
      if (binds_[i].buffer_type == MYSQL_TYPE_LONGLONG) {
        row.emplace_back(static_cast<std::int64_t>(nulls_[i] ? 0 : numbers_[i]));
      } else {
        row.emplace_back(nulls_[i] ? std::string() : texts_[i].substr(0, lengths_[i]));
      }
    }
    return row;
  }

 private:
  std::vector<MYSQL_BIND> binds_;
  std::vector<long long> numbers_;
  std::vector<std::string> texts_;
  std::vector<unsigned long> lengths_;
  std::vector<my_bool> nulls_;
};

class MariadbConnection : public Connection {
 public:
  explicit MariadbConnection(MYSQL* handle) : handle_(handle) {}
  MariadbConnection(const MariadbConnection&) = delete;
  MariadbConnection& operator=(const MariadbConnection&) = delete;
  ~MariadbConnection() override {
    for (auto& [sql, statement] : statements_) mysql_stmt_close(statement);
    mysql_close(handle_);
  }

  SqlResult Run(std::string_view sql, const std::vector<Value>& parameters) override {
    SqlResult result;
    MYSQL_STMT* statement = Prepare(sql, &result.error);
    if (!statement) return result;
    std::vector<MYSQL_BIND> binds(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) BindOne(parameters[i], &binds[i]);
    if (!binds.empty()) mysql_stmt_bind_param(statement, binds.data());
    if (mysql_stmt_execute(statement) != 0) return Failure(statement);
    MYSQL_RES* meta = mysql_stmt_result_metadata(statement);
    if (meta) {
      bool stored = mysql_stmt_store_result(statement) == 0;
      mysql_free_result(meta);
      if (!stored) return Failure(statement);
      meta = mysql_stmt_result_metadata(statement);  // now with the longest lengths
      Columns columns(statement, meta);
      while (mysql_stmt_fetch(statement) == 0) result.rows.push_back(columns.Read());
      mysql_free_result(meta);
      mysql_stmt_free_result(statement);
    } else {
      result.changed = static_cast<std::int64_t>(mysql_stmt_affected_rows(statement));
      result.last_id = static_cast<std::int64_t>(mysql_stmt_insert_id(statement));
    }
    result.ok = true;
    return result;
  }

  bool BeginWrite() override { return Plain("START TRANSACTION"); }
  bool BeginRead() override { return Plain("START TRANSACTION WITH CONSISTENT SNAPSHOT"); }
  bool Commit() override { return Plain("COMMIT"); }
  void Rollback() override { Plain("ROLLBACK"); }
  bool usable() const override { return usable_; }

 private:
  static constexpr std::size_t kMostStatements = 200;

  static void BindOne(const Value& value, MYSQL_BIND* bind) {
    std::memset(bind, 0, sizeof(*bind));
    if (const auto* text = std::get_if<std::string>(&value)) {
      bind->buffer_type = MYSQL_TYPE_STRING;
      bind->buffer = const_cast<char*>(text->data());
      bind->buffer_length = text->size();
    } else {
      bind->buffer_type = MYSQL_TYPE_LONGLONG;
      bind->buffer = const_cast<std::int64_t*>(&std::get<std::int64_t>(value));
    }
  }

  bool Plain(const char* sql) {
    if (mysql_query(handle_, sql) == 0) return true;
    Note(mysql_errno(handle_));
    return false;
  }

  void Note(unsigned code) {
    if (code >= kFirstClientError && code < kFirstClientError + 100) usable_ = false;
  }

  SqlResult Failure(MYSQL_STMT* statement) {
    SqlResult result;
    unsigned code = mysql_stmt_errno(statement);
    Note(code);
    result.error = mysql_stmt_error(statement);
    result.duplicate = code == kDuplicateEntry;
    return result;
  }

  MYSQL_STMT* Prepare(std::string_view sql, std::string* error) {
    auto found = statements_.find(std::string(sql));
    if (found != statements_.end()) return found->second;
    MYSQL_STMT* statement = mysql_stmt_init(handle_);
    my_bool yes = 1;
    mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
    if (mysql_stmt_prepare(statement, sql.data(), sql.size()) != 0) {
      Note(mysql_stmt_errno(statement));
      *error = mysql_stmt_error(statement);
      mysql_stmt_close(statement);
      return nullptr;
    }
    if (statements_.size() >= kMostStatements) {
      for (auto& [text, old] : statements_) mysql_stmt_close(old);
      statements_.clear();
    }
    statements_.emplace(sql, statement);
    return statement;
  }

  MYSQL* handle_;
  bool usable_ = true;
  std::unordered_map<std::string, MYSQL_STMT*> statements_;
};

struct MariadbAddress {
  std::string user, password, host, name, socket;
  unsigned port = 0;
};

class MariadbDatabase : public Database {
 public:
  explicit MariadbDatabase(MariadbAddress address) : address_(std::move(address)) {}

  std::unique_ptr<Connection> Open(std::string* error) override {
    MYSQL* handle = mysql_init(nullptr);
    unsigned seconds = 5;
    mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    const char* socket = address_.socket.empty() ? nullptr : address_.socket.c_str();
    const char* host = address_.host.empty() ? nullptr : address_.host.c_str();
    if (!mysql_real_connect(handle, host, address_.user.c_str(), address_.password.c_str(),
                            address_.name.c_str(), address_.port, socket, CLIENT_FOUND_ROWS)) {
      *error = mysql_error(handle);
      mysql_close(handle);
      return nullptr;
    }
    return std::make_unique<MariadbConnection>(handle);
  }

  bool is_mariadb() const override { return true; }

 private:
  MariadbAddress address_;
};

}  // namespace

std::unique_ptr<Database> MakeMariadb(const std::string& address, std::string* error) {
  *error = "the address is mariadb://USER[:PASSWORD]@[HOST[:PORT]]/NAME[?socket=PATH]";
  std::string rest = address.substr(std::strlen("mariadb://"));
  auto at = rest.rfind('@');
  if (at == std::string::npos) return nullptr;
  MariadbAddress parts;
  parts.user = rest.substr(0, at);
  rest = rest.substr(at + 1);
  if (auto colon = parts.user.find(':'); colon != std::string::npos) {
    parts.password = parts.user.substr(colon + 1);
    parts.user.resize(colon);
  }
  auto slash = rest.find('/');
  if (slash == std::string::npos) return nullptr;
  parts.host = rest.substr(0, slash);
  parts.name = rest.substr(slash + 1);
  constexpr std::string_view kSocket = "?socket=";
  if (auto query = parts.name.find(kSocket); query != std::string::npos) {
    parts.socket = parts.name.substr(query + kSocket.size());
    parts.name.resize(query);
  }
  if (auto colon = parts.host.find(':'); colon != std::string::npos) {
    parts.port = static_cast<unsigned>(std::strtoul(parts.host.c_str() + colon + 1, nullptr, 10));
    parts.host.resize(colon);
  }
  if (parts.name.empty() || parts.user.empty()) return nullptr;
  error->clear();
  mysql_library_init(0, nullptr, nullptr);
  return std::make_unique<MariadbDatabase>(std::move(parts));
}

}  // namespace timeline
