// The service of document S0 without Sava, for bench/comparison.py: the same three calls over a
// relational database (chapter 7.2, listing 16) or over the document's own list (chapters 4 and 5).
//
//   sava_comparison_service PORT list FILE [SECONDS]          its queue is emptied every so often
//   sava_comparison_service PORT document|counter DATABASE    DATABASE as in apps/timeline
//
// Schema `document`: one relation Association(Id, Key, AssociatedKey), no index but the key, a row
// for each association; the most frequent by grouping. Schema `counter`: a row for each pair with
// its count, and an index by which the most frequent are read in order. GUIDs are kept as 16 bytes.
//
// Besides the document's calls: POST /associations:batch (a JSON array) loads quickly, POST /drain
// empties the queue now, POST /save writes the list's file. Ends on SIGTERM.
#include <httplib.h>
#include <signal.h>

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "comparison_list.h"
#include "data/sql.h"
#include "http/guid.h"

namespace {

namespace json = boost::json;

constexpr size_t kTop = 20;

// 128 bits, as .NET's Guid.
using Guid = std::array<uint8_t, 16>;
struct GuidHash {
  size_t operator()(const Guid& guid) const {
    size_t word = 0;
    memcpy(&word, guid.data(), sizeof word);
    return word;
  }
};

std::optional<Guid> ParseGuid(std::string_view text) {
  std::string canonical;
  if (!sava::http::CanonicalGuid(text, &canonical)) return {};
  std::erase(canonical, '-');
  Guid guid{};
  for (size_t i = 0; i < guid.size(); ++i) {
    std::from_chars(canonical.data() + 2 * i, canonical.data() + 2 * i + 2, guid[i], 16);
  }
  return guid;
}

std::string GuidText(const Guid& guid) {
  char text[37];
  const auto* g = guid.data();
  std::snprintf(text, sizeof text,
                "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", g[0], g[1],
                g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
                g[15]);
  return text;
}

struct Pair {
  Guid key;
  Guid associated;
};
struct Counted {
  Guid associated;
  int64_t frequency;
};

// What is behind the three calls. Called by one request at a time.
class Store {
 public:
  virtual ~Store() = default;
  virtual bool Insert(const Pair& pair) = 0;
  virtual bool InsertAll(const std::vector<Pair>& pairs) = 0;
  virtual std::optional<std::vector<Counted>> Top(const Guid& key, size_t most) = 0;
  virtual bool Forget(const Guid& key) = 0;
  virtual bool Drain() { return true; }
  virtual bool Save() { return true; }
};

class ListStore final : public Store {
 public:
  ListStore(std::string file, unsigned seconds) : file_(std::move(file)), repository_(seconds) {
    std::ifstream in(file_, std::ios::binary);
    Record record{};
    while (in.read(reinterpret_cast<char*>(&record), sizeof record)) {
      repository_.Load(record.key, record.associated, record.frequency);
    }
  }

  bool Insert(const Pair& pair) override {
    repository_.SaveNewAssociation(pair.key, pair.associated);
    return true;
  }
  bool InsertAll(const std::vector<Pair>& pairs) override {
    for (const Pair& pair : pairs) Insert(pair);
    repository_.Drain();
    return true;
  }
  std::optional<std::vector<Counted>> Top(const Guid& key, size_t most) override {
    std::vector<Counted> rows;
    for (const auto& node : repository_.GetMostFrequentAssociatedKeys(key, most)) {
      rows.push_back({node.associated_key, node.frequency});
    }
    return rows;
  }
  bool Forget(const Guid& key) override {
    repository_.DeleteAllAssociatedKeys(key);
    return true;
  }
  bool Drain() override {
    repository_.Drain();
    return true;
  }
  bool Save() override {
    std::ofstream out(file_, std::ios::binary | std::ios::trunc);
    repository_.ForEach([&out](const Guid& key, const Guid& associated, uint32_t frequency) {
      const Record record{key, associated, frequency};
      out.write(reinterpret_cast<const char*>(&record), sizeof record);
    });
    return out.flush().good();
  }

 private:
  struct Record {
    Guid key;
    Guid associated;
    uint32_t frequency;
  };

  const std::string file_;
  comparison::AssociationRepository<Guid, Guid, GuidHash> repository_;
};

timeline::Value Bytes(const Guid& guid) {
  return std::string(reinterpret_cast<const char*>(guid.data()), guid.size());
}

// Texts of the two schemas in the words of the two databases.
class SqlStore : public Store {
 public:
  SqlStore(std::unique_ptr<timeline::Database> database, bool counter)
      : database_(std::move(database)), counter_(counter) {}

  // Empty when the tables are there.
  std::string Open() {
    std::string error;
    connection_ = database_->Open(&error);
    if (connection_ == nullptr) return error;
    const bool maria = database_->is_mariadb();
    const std::string guid = maria ? " BINARY(16) NOT NULL" : " BLOB NOT NULL";
    // A table is in the order of its primary key in MariaDB; SQLite has to be told.
    const std::string end = maria ? ")" : ") WITHOUT ROWID";
    std::vector<std::string> statements;
    if (counter_) {
      statements = {"CREATE TABLE IF NOT EXISTS Counter(AssociatorKey" + guid + ", AssociatedKey" +
                        guid + ", Frequency INTEGER NOT NULL, PRIMARY KEY(AssociatorKey, " +
                        "AssociatedKey)" + end,
                    "CREATE INDEX IF NOT EXISTS ByFrequency ON Counter(AssociatorKey, Frequency "
                    "DESC)"};
    } else {
      statements = {"CREATE TABLE IF NOT EXISTS Association(Id" + guid + ", AssociatorKey" + guid +
                    ", AssociatedKey" + guid + ", PRIMARY KEY(Id)" + end};
    }
    for (const std::string& statement : statements) {
      if (const auto made = connection_->Run(statement); !made.ok) return made.error;
    }
    return {};
  }

  bool Insert(const Pair& pair) override {
    if (!counter_) {
      return Told(connection_->Run("INSERT INTO Association VALUES(?, ?, ?)",
                                   {NewId(), Bytes(pair.key), Bytes(pair.associated)}),
                  "Insert in DB not successful");
    }
    const char* const sql =
        database_->is_mariadb()
            ? "INSERT INTO Counter VALUES(?, ?, 1) ON DUPLICATE KEY UPDATE Frequency = Frequency + "
              "1"
            : "INSERT INTO Counter VALUES(?, ?, 1) ON CONFLICT DO UPDATE SET Frequency = Frequency "
              "+ 1";
    return Told(connection_->Run(sql, {Bytes(pair.key), Bytes(pair.associated)}),
                "Insert in DB not successful");
  }

  bool InsertAll(const std::vector<Pair>& pairs) override {
    if (!connection_->BeginWrite()) return false;
    for (const Pair& pair : pairs) {
      if (!Insert(pair)) {
        connection_->Rollback();
        return false;
      }
    }
    return connection_->Commit();
  }

  std::optional<std::vector<Counted>> Top(const Guid& key, size_t most) override {
    const char* const sql =
        counter_ ? "SELECT AssociatedKey, Frequency FROM Counter WHERE AssociatorKey = ? "
                   "ORDER BY Frequency DESC LIMIT ?"
                 : "SELECT AssociatedKey, COUNT(*) AS Frequency FROM Association WHERE "
                   "AssociatorKey = ? GROUP BY AssociatedKey ORDER BY Frequency DESC LIMIT ?";
    const auto found = connection_->Run(sql, {Bytes(key), static_cast<int64_t>(most)});
    if (!Told(found, "Reading from DB not successful")) return {};
    std::vector<Counted> rows;
    for (const auto& row : found.rows) {
      Guid associated{};
      const std::string& bytes = timeline::TextOf(row[0]);
      if (bytes.size() != associated.size()) return {};
      memcpy(associated.data(), bytes.data(), associated.size());
      rows.push_back({associated, timeline::IntegerOf(row[1])});
    }
    return rows;
  }

  bool Forget(const Guid& key) override {
    const char* const sql = counter_ ? "DELETE FROM Counter WHERE AssociatorKey = ?"
                                     : "DELETE FROM Association WHERE AssociatorKey = ?";
    return Told(connection_->Run(sql, {Bytes(key)}), "Deletion in DB not successful");
  }

 private:
  static bool Told(const timeline::SqlResult& result, const char* words) {
    if (!result.ok) std::fprintf(stderr, "%s: %s\n", words, result.error.c_str());
    return result.ok;
  }
  timeline::Value NewId() {
    Guid id{};
    for (size_t i = 0; i < id.size(); i += 8) {
      const uint64_t word = random_();
      memcpy(id.data() + i, &word, 8);
    }
    return Bytes(id);
  }

  std::unique_ptr<timeline::Database> database_;
  std::unique_ptr<timeline::Connection> connection_;
  const bool counter_;
  std::mt19937_64 random_{std::random_device{}()};
};

// ---- the service ----

std::optional<Guid> Member(const json::object& object, std::string_view name) {
  for (const auto& [key, value] : object) {
    if (sava::base::EqualsNoCase({key.data(), key.size()}, name) && value.is_string()) {
      return ParseGuid({value.get_string().data(), value.get_string().size()});
    }
  }
  return {};
}

std::optional<Pair> ReadPair(const json::value& value) {
  if (!value.is_object()) return {};
  const auto key = Member(value.get_object(), "key");
  const auto associated = Member(value.get_object(), "associatedKey");
  if (!key || !associated) return {};
  return Pair{*key, *associated};
}

std::optional<json::value> ReadJson(const std::string& body) {
  json::error_code error;
  json::value value = json::parse(body, error);
  if (error) return {};
  return value;
}

class Service {
 public:
  explicit Service(Store* store) : store_(*store) {
    using httplib::Request;
    using httplib::Response;
    server_.Post("/associations", [this](const Request& request, Response& response) {
      const auto value = ReadJson(request.body);
      const auto pair = value ? ReadPair(*value) : std::nullopt;
      if (!pair) return Answer(response, 400);
      std::lock_guard lock(mutex_);
      Answer(response, store_.Insert(*pair) ? 204 : 500);
    });
    server_.Post("/associations:batch", [this](const Request& request, Response& response) {
      const auto value = ReadJson(request.body);
      if (!value || !value->is_array()) return Answer(response, 400);
      std::vector<Pair> pairs;
      for (const json::value& one : value->get_array()) {
        const auto pair = ReadPair(one);
        if (!pair) return Answer(response, 400);
        pairs.push_back(*pair);
      }
      std::lock_guard lock(mutex_);
      Answer(response, store_.InsertAll(pairs) ? 200 : 500);
    });
    server_.Get("/associations/([^/]+)", [this](const Request& request, Response& response) {
      const auto key = ParseGuid(request.matches[1].str());
      const int64_t most =
          request.has_param("k") ? std::atoll(request.get_param_value("k").c_str()) : kTop;
      if (!key || most < 1) return Answer(response, 404);
      std::lock_guard lock(mutex_);
      WriteTop(response, store_.Top(*key, static_cast<size_t>(most)));
    });
    server_.Delete("/associations/([^/]+)", [this](const Request& request, Response& response) {
      const auto key = ParseGuid(request.matches[1].str());
      if (!key) return Answer(response, 404);
      std::lock_guard lock(mutex_);
      Answer(response, store_.Forget(*key) ? 200 : 500);
    });
    server_.Post("/drain", [this](const Request&, Response& response) {
      std::lock_guard lock(mutex_);
      Answer(response, store_.Drain() ? 200 : 500);
    });
    server_.Post("/save", [this](const Request&, Response& response) {
      std::lock_guard lock(mutex_);
      Answer(response, store_.Save() ? 200 : 500);
    });
    server_.set_tcp_nodelay(true);
    server_.set_keep_alive_max_count(SIZE_MAX);
    server_.set_payload_max_length(size_t{64} << 20);
    server_.new_task_queue = [] { return new httplib::ThreadPool(4); };
  }

  bool Run(int port) { return server_.listen("127.0.0.1", port); }
  void Stop() { server_.stop(); }

 private:
  static void Answer(httplib::Response& response, int status) { response.status = status; }
  static void WriteTop(httplib::Response& response,
                       const std::optional<std::vector<Counted>>& rows) {
    if (!rows) return Answer(response, 500);
    std::string body = "[";
    for (const Counted& row : *rows) {
      if (body.size() > 1) body += ',';
      body += R"({"associatedKey":")" + GuidText(row.associated) + R"(","frequency":)" +
              std::to_string(row.frequency) + '}';
    }
    response.set_content(body + "]", "application/json");
  }

  Store& store_;
  std::mutex mutex_;
  httplib::Server server_;
};

int Fail(const std::string& words) {
  std::fprintf(stderr, "sava_comparison_service: %s\n", words.c_str());
  return 1;
}

std::unique_ptr<Store> MakeStore(int argc, char** argv, std::string* error) {
  const std::string_view kind = argv[2];
  if (kind == "list") {
    constexpr unsigned kTwoMinutes = 120;
    const auto seconds = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : kTwoMinutes;
    return std::make_unique<ListStore>(argv[3], seconds);
  }
  if (kind != "document" && kind != "counter") {
    *error = "list, document or counter, not " + std::string(kind);
    return nullptr;
  }
  auto database = timeline::MakeDatabase(argv[3], error);
  if (database == nullptr) return nullptr;
  auto store = std::make_unique<SqlStore>(std::move(database), kind == "counter");
  *error = store->Open();
  if (!error->empty()) return nullptr;
  return store;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Fail("PORT list|document|counter FILE|DATABASE");
  // Only the thread that waits for it gets the signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::string error;
  const std::unique_ptr<Store> store = MakeStore(argc, argv, &error);
  if (store == nullptr) return Fail(error);
  Service service(store.get());
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    service.Stop();
  });
  const bool served = service.Run(std::atoi(argv[1]));
  if (!served) kill(getpid(), SIGTERM);
  waiter.join();
  return served ? 0 : Fail("the port cannot be listened on");
}
