// INFO's section about persistence: loading, snapshots, the append-only log.
#include <algorithm>

#include "engine/info.h"
#include "persistence/families.h"
#include "persistence/persistence.h"

namespace sava::persistence {

namespace {

using engine::InfoWriter;
using engine::Ratio;

using Activity = Persistence::Activity;

std::string_view OkOr(bool good) { return good ? "ok" : "err"; }

void LoadingFields(InfoWriter& out, const Persistence& persistence) {
  if (!persistence.loading()) return;
  const Persistence::LoadFigures figures = persistence.load_figures();
  out.Field("loading_start_time", figures.start_ms / 1000);
  out.Field("loading_total_bytes", figures.total_bytes);
  out.Field("loading_rdb_used_mem", 0);
  out.Field("loading_loaded_bytes", figures.loaded_bytes);
  out.Line("loading_loaded_perc:{:.2f}",
           Ratio(figures.loaded_bytes, std::max<uint64_t>(1, figures.total_bytes)) * 100);
  out.Field("loading_eta_seconds", figures.eta_s);
}

void SaveFields(InfoWriter& out, const Persistence& persistence,
                const Persistence::Figures& figures) {
  // A copy for replicas counts, as in Redis.
  const bool saving = figures.activity == Activity::kBgsave || figures.activity == Activity::kCopy;
  out.Field("rdb_changes_since_last_save", persistence.Changes());
  out.Field("rdb_bgsave_in_progress", saving ? 1 : 0);
  out.Field("rdb_last_save_time", figures.save.last_s);
  out.Field("rdb_last_bgsave_status", OkOr(figures.save.last_ok));
  out.Field("rdb_last_bgsave_time_sec", figures.save.last_seconds);
  out.Field("rdb_current_bgsave_time_sec",
            saving ? out.now_ms / 1000 - figures.activity_since_s : -1);
  out.Field("rdb_saves", figures.save.count);
  out.Field("rdb_last_cow_size", figures.save.last_images);
  const Persistence::LoadFigures load = persistence.load_figures();
  out.Field("rdb_last_load_keys_expired", load.keys_expired);
  out.Field("rdb_last_load_keys_loaded", load.keys_loaded);
}

void LogFields(InfoWriter& out, const Persistence& persistence,
               const Persistence::Figures& figures) {
  const storage::AofLog* const log = persistence.log();
  const bool rewriting = figures.activity == Activity::kRewrite;
  out.Field("aof_enabled", out.engine.settings().appendonly ? 1 : 0);
  out.Field("aof_rewrite_in_progress", rewriting ? 1 : 0);
  out.Field("aof_rewrite_scheduled", figures.rewrite.scheduled ? 1 : 0);
  out.Field("aof_last_rewrite_time_sec", figures.rewrite.last_seconds);
  out.Field("aof_current_rewrite_time_sec",
            rewriting ? out.now_ms / 1000 - figures.activity_since_s : -1);
  out.Field("aof_last_bgrewrite_status", OkOr(figures.rewrite.last_ok));
  out.Field("aof_rewrites", figures.rewrite.count);
  out.Field("aof_rewrites_consecutive_failures", figures.rewrite.failures);
  out.Field("aof_last_write_status",
            OkOr(log == nullptr || log->state() == storage::AofLog::State::kGood));
  out.Field("aof_last_cow_size", figures.rewrite.last_images);
  out.Fields({"module_fork_in_progress", "module_fork_last_cow_size"}, "0");
  if (log == nullptr) return;
  out.Field("aof_current_size", log->size());
  out.Field("aof_base_size", log->base_size());
  out.Field("aof_pending_rewrite", figures.rewrite.scheduled ? 1 : 0);
  out.Field("aof_buffer_length", log->buffered());
  out.Field("aof_pending_bio_fsync", 0);
  out.Field("aof_delayed_fsync", log->delayed_syncs());
  out.Field("aof_ring_syncs", log->ring_syncs());
}

void PersistenceSection(InfoWriter& out) {
  const Persistence& persistence = out.part<Persistence>();
  const Persistence::Figures figures = persistence.figures();
  const snapshot::Snapshot& snapshot = out.engine.snapshot();
  const bool active = snapshot.active();
  uint64_t total = 0;
  uint64_t done = 0;
  if (figures.activity == Activity::kBgsave || figures.activity == Activity::kSave ||
      figures.activity == Activity::kRewrite) {
    // Before its cut a save will have the present keys.
    total = figures.cut_made ? snapshot.keys_total() : out.engine.keyspace().AllKeys();
    done = figures.cut_made ? snapshot.keys_done() : 0;
  }
  out.Field("loading", persistence.loading() ? 1 : 0);
  out.Field("async_loading", 0);
  out.Field("current_cow_peak", active ? snapshot.peak_bytes() : 0);
  out.Field("current_cow_size", active ? snapshot.image_bytes() : 0);
  out.Field("current_cow_size_age", 0);
  out.Line("current_fork_perc:{:.2f}", Ratio(done, total) * 100);
  out.Field("current_save_keys_processed", done);
  out.Field("current_save_keys_total", total);
  SaveFields(out, persistence, figures);
  LogFields(out, persistence, figures);
  out.Field("snapshot_image_bytes_peak", snapshot.peak_bytes());
  LoadingFields(out, persistence);
}

}  // namespace

const engine::InfoSection kPersistenceInfo{"persistence", "Persistence", PersistenceSection};

}  // namespace sava::persistence
