#include "replication/follower.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "storage/file_system.h"

namespace sava::replication {

namespace {

constexpr std::string_view kIdField = "repl-id";
constexpr std::string_view kOffsetField = "repl-offset";
constexpr std::string_view kDatabaseField = "repl-stream-db";

int64_t SecondsSince(int64_t since_ms, int64_t now_ms) {
  return since_ms == 0 ? -1 : std::max<int64_t>(0, now_ms - since_ms) / 1000;
}

// Data sets that processes which are gone were receiving: "temp-<seconds>.<pid>.rdb".
void RemoveLeftFiles(const std::string& dir) {
  storage::FileSystem& files = storage::FileSystem::Real();
  for (const std::string& name : files.List(dir)) {
    std::string_view rest = name;
    if (!rest.starts_with("temp-") || !rest.ends_with(".rdb")) continue;
    rest.remove_prefix(5);
    rest.remove_suffix(4);
    const size_t dot = rest.find('.');
    int64_t second = 0;
    int64_t pid = 0;
    if (dot == std::string_view::npos || !base::ParseInt(rest.substr(0, dot), &second) ||
        !base::ParseInt(rest.substr(dot + 1), &pid) || pid <= 0 ||
        kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) {
      continue;
    }
    spdlog::info("{} is removed: the server that was receiving it has ended", name);
    static_cast<void>(files.Remove(storage::PathIn(dir, name)));
  }
}

}  // namespace

Follower::Follower(engine::Engine* engine, persistence::Persistence* persistence, Master* master)
    : engine_(*engine),
      persistence_(*persistence),
      master_(*master),
      stream_(master->stream()),
      link_(engine, persistence, &stream_) {
  // From the first key that is loaded on.
  engine_.role().set_replica(!engine_.settings().master_host.empty());
}

// ---- the start ----

void Follower::LeftOut(int db, std::string_view key) {
  if (started_ || is_replica() || !persistence_.loaded_dump() || !loaded_.known()) return;
  BeginLoaded();
  master_.stream().AppendGone(db, key);
}

// As a master: the history of before is the second one.
void Follower::BeginLoaded() {
  if (std::exchange(begun_, true)) return;
  History history;
  history.offset = loaded_.offset;
  history.second_id = loaded_.id;
  history.second_offset = loaded_.offset + 1;
  master_.stream().GoOn(history);
}

void Follower::LoadEnded() {
  started_ = true;
  if (!persistence_.loaded_dump()) loaded_ = {};
  static_cast<void>(ReadEndLine(persistence_.loaded_end(), &loaded_));
  if (!is_replica()) {
    if (!loaded_.known()) return;
    BeginLoaded();
    master_.GoOn();
    spdlog::info("Replicas that were at {}:{} may go on from there", loaded_.id, loaded_.offset);
    return;
  }
  master_.BecomeReplica();
  if (loaded_.known()) {
    stream_.Adopt(loaded_.id, loaded_.offset);
    link_.SetResumable(true, loaded_.db);
  }
  const config::Settings& settings = engine_.settings();
  link_.Follow(settings.master_host, static_cast<int>(settings.master_port));
}

// ---- roles ----

void Follower::Start() {
  engine::Lane& lane = engine_.apply_lane();
  engine_.BeginBatch(lane);
  const std::string dir = engine_.settings().dir;
  const bool swaps = engine_.settings().repl_diskless_load == 2;
  engine_.EndBatch(lane);
  RemoveLeftFiles(dir);
  if (swaps) {
    spdlog::warn("repl-diskless-load swapdb acts as disabled: the data set goes by way of a file");
  }
  link_.Start();
}

bool Follower::Follows(std::string_view host, int port) const {
  const config::Settings& settings = engine_.settings();
  return is_replica() && base::EqualsNoCase(settings.master_host, host) &&
         settings.master_port == port;
}

void Follower::Follow(engine::Lane& lane, const std::string& host, int port,
                      std::function<void(bool)> taken) {
  config::Settings& settings = engine_.settings();
  settings.master_host = host;
  settings.master_port = port;
  if (!is_replica()) {
    // What the others of its history have seen it has seen, too.
    spdlog::info(
        "Before turning into a replica, using my own master parameters to synthesize a "
        "cached master: I may be able to synchronize with the new master with just a "
        "partial transfer.");
    engine_.role().set_replica(true);
    master_.BecomeReplica();
    link_.SetResumable(true, 0);
    engine_.waiting().RoleChanged(lane);
  }
  link_.Follow(host, port, std::move(taken));
}

void Follower::Promote(engine::Lane& lane) {
  if (!is_replica()) return;
  config::Settings& settings = engine_.settings();
  settings.master_host.clear();
  settings.master_port = 0;
  link_.FollowNobody();
  engine_.role().set_replica(false);
  master_.BecomeMaster();
  persistence_.KeepWhatThereIs();
  engine_.waiting().RoleChanged(lane);
}

engine::Lane& Follower::ClosingLane() const {
  engine::Lane* found = &engine_.house_lane();
  engine_.ForEachLane([&](engine::Lane& lane) {
    if (lane.exclusive()) found = &lane;
  });
  return *found;
}

void Follower::HandOver(const std::string& host, int port, std::function<bool()> wanted,
                        std::function<void(bool)> done) {
  link_.Post([this, host, port, wanted = std::move(wanted), done = std::move(done)] {
    if (!wanted()) return;
    Follow(engine_.apply_lane(), host, port, [this, done](bool taken) {
      if (taken) return done(true);
      link_.Post([this, done] {
        Promote(engine_.apply_lane());
        done(false);
      });
    });
  });
}

// ---- what it shows ----

void Follower::WriteInfo(engine::InfoWriter& out) const {
  const config::Settings& settings = out.engine.settings();
  const ReplicaLink::Figures link = link_.figures();
  const int64_t applied = stream_.history().offset;
  const bool up = link.state == ReplicaLink::State::kConnected;
  const bool syncs = link.state == ReplicaLink::State::kSync;
  out.Field("master_host", settings.master_host);
  out.Field("master_port", settings.master_port);
  out.Field("master_link_status", up ? "up" : "down");
  out.Field("master_last_io_seconds_ago", up ? SecondsSince(link.last_io_ms, out.now_ms) : -1);
  out.Field("master_sync_in_progress", syncs ? 1 : 0);
  out.Field("slave_read_repl_offset", applied + static_cast<int64_t>(link.behind));
  out.Field("slave_repl_offset", applied);
  if (syncs) {
    const int64_t left = link.sync_total < 0 ? 0 : link.sync_total - link.sync_read;
    const double share = link.sync_total <= 0 ? 0
                                              : static_cast<double>(link.sync_read) * 100 /
                                                    static_cast<double>(link.sync_total);
    out.Field("master_sync_total_bytes", link.sync_total);
    out.Field("master_sync_read_bytes", link.sync_read);
    out.Field("master_sync_left_bytes", left);
    out.Line("master_sync_perc:{:.2f}", share);
    out.Field("master_sync_last_io_seconds_ago", SecondsSince(link.last_io_ms, out.now_ms));
  }
  if (!up) {
    out.Field("master_link_down_since_seconds", SecondsSince(link.down_since_ms, out.now_ms));
    if (!link.last_error.empty()) out.Field("master_link_error", link.last_error);
  }
  out.Line("slave_apply_cpu_seconds:{:.3f}", static_cast<double>(link.apply_cpu_us) / 1e6);
  out.Field("slave_priority", settings.replica_priority);
  out.Field("slave_read_only", settings.replica_read_only ? 1 : 0);
  out.Field("replica_announced", settings.replica_announced ? 1 : 0);
}

void Follower::WriteRole(protocol::Reply& reply) const {
  const config::Settings& settings = engine_.settings();
  reply.Array(5);
  reply.Bulk("slave");
  reply.Bulk(settings.master_host);
  reply.Int(settings.master_port);
  reply.Bulk(ReplicaLink::Name(link_.figures().state));
  reply.Int(link_is_up() ? stream_.history().offset : -1);
}

// ---- what files tell ----

// Of what is in the stream by now.
Follower::Place Follower::Now() const {
  const bool known = is_replica() ? link_.resumable() : master_.stream().running();
  if (!known) return {};
  const History history = stream_.history();
  return {history.id, history.offset, is_replica() ? link_.db() : master_.stream().db()};
}

// A master's place is known when all records of before have been merged.
void Follower::AtCut() {
  const auto place = std::make_shared<std::promise<Place>>();
  cut_ = place->get_future().share();
  if (is_replica() || !master_.stream().running()) return place->set_value(Now());
  const auto tell = [place](const ChangeStream::Mark& mark) {
    place->set_value({mark.id, mark.place.at, mark.db});
  };
  master_.stream().MarkAt(engine_.journal().Cut(), false, tell);
}

void Follower::Save(snapshot::CutWriter& out) const {
  if (!cut_.valid()) return;
  engine_.journal().Nudge();
  const Place& place = cut_.get();
  if (!place.known()) return;
  out.Aux(kDatabaseField, base::IntText(place.db));
  out.Aux(kIdField, place.id);
  out.Aux(kOffsetField, base::IntText(place.offset));
}

bool Follower::LoadField(std::string_view name, std::string_view value) {
  int64_t number = 0;
  if (name == kIdField) {
    loaded_.id = IsId(value) ? value : std::string_view();
    return true;
  }
  if (name == kOffsetField) {
    if (!base::ParseInt(value, &loaded_.offset) || loaded_.offset > kMostOffset) {
      loaded_.offset = -1;
    }
    return true;
  }
  if (name != kDatabaseField) return false;
  const bool good =
      base::ParseInt(value, &number) && number >= 0 && number < engine_.keyspace().databases();
  loaded_.db = good ? static_cast<int>(number) : 0;
  link_.NoteLoadedDb(loaded_.db);
  return true;
}

std::string Follower::EndLine() const {
  const Place place = Now();
  if (!place.known()) return {};
  return fmt::format("#REPL {} {} {}\r\n", place.id, place.offset, place.db);
}

bool Follower::ReadEndLine(std::string_view line, Place* place) const {
  const auto words = base::SplitArgs(line);
  Place read;
  int64_t db = 0;
  if (!words || words->size() != 4 || (*words)[0] != "#REPL" || !IsId((*words)[1]) ||
      !base::ParseInt((*words)[2], &read.offset) || read.offset < 0 || read.offset > kMostOffset ||
      !base::ParseInt((*words)[3], &db) || db < 0 || db >= engine_.keyspace().databases()) {
    return false;
  }
  read.id = (*words)[1];
  read.db = static_cast<int>(db);
  *place = read;
  return true;
}

}  // namespace sava::replication
