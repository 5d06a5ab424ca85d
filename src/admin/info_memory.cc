// INFO's section about memory.
#include "admin/info_sections.h"
#include "admin/process_facts.h"
#include "admin/process_monitor.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "config/config.h"
#include "engine/client_list.h"
#include "engine/clients.h"

namespace sava::admin {

namespace {

using engine::InfoWriter;
using engine::Ratio;

size_t ConnectionBytes(InfoWriter& out) {
  size_t bytes = 0;
  if (out.lane.exclusive()) {
    engine::ForEachClient(
        out.engine, [&](const engine::Client& client) { bytes += engine::ClientMemory(client); });
  }
  return bytes;
}

// The number, and again for people.
void Bytes(InfoWriter& out, std::string_view name, size_t bytes) {
  out.Field(name, bytes);
  out.Line("{}_human:{}", name, base::HumanBytes(bytes));
}

void Overheads(InfoWriter& out, const MemoryFigures& memory) {
  out.Line("allocator_frag_ratio:{:.2f}", Ratio(memory.active, memory.allocated));
  out.Field("allocator_frag_bytes", engine::Difference(memory.active, memory.allocated));
  out.Line("allocator_rss_ratio:{:.2f}", Ratio(memory.resident, memory.active));
  out.Field("allocator_rss_bytes", engine::Difference(memory.resident, memory.active));
  out.Line("rss_overhead_ratio:{:.2f}", Ratio(memory.rss, memory.resident));
  out.Field("rss_overhead_bytes", engine::Difference(memory.rss, memory.resident));
  out.Line("mem_fragmentation_ratio:{:.2f}", Ratio(memory.rss, memory.used));
  out.Field("mem_fragmentation_bytes", engine::Difference(memory.rss, memory.used));
}

}  // namespace

void MemorySection(InfoWriter& out) {
  const MemoryFigures memory = out.part<ProcessMonitor>().Memory();
  const config::Settings& settings = out.engine.settings();
  const size_t net = memory.used > memory.startup ? memory.used - memory.startup : 0;
  Bytes(out, "used_memory", memory.used);
  Bytes(out, "used_memory_rss", memory.rss);
  Bytes(out, "used_memory_peak", memory.peak);
  out.Line("used_memory_peak_perc:{:.2f}%", Ratio(memory.used, memory.peak) * 100);
  out.Field("used_memory_overhead", memory.overhead);
  out.Field("used_memory_startup", memory.startup);
  out.Field("used_memory_dataset", memory.dataset);
  out.Line("used_memory_dataset_perc:{:.2f}%", Ratio(memory.dataset, net) * 100);
  out.Field("allocator_allocated", memory.allocated);
  out.Field("allocator_active", memory.active);
  out.Field("allocator_resident", memory.resident);
  Bytes(out, "total_system_memory", memory.system_total);
  const engine::FunctionLibraries& libraries = out.engine.libraries();
  engine::ScriptFigures scripts;
  if (out.engine.scripting() != nullptr) scripts = out.engine.scripting()->Figures();
  out.Field("used_memory_vm_eval", scripts.vm_eval);
  Bytes(out, "used_memory_lua", scripts.vm_eval);
  out.Field("used_memory_scripts_eval", scripts.script_bytes);
  out.Field("number_of_cached_scripts", scripts.scripts);
  out.Field("number_of_functions", scripts.functions);
  out.Field("number_of_libraries", libraries.count());
  out.Field("used_memory_vm_functions", scripts.vm_functions);
  Bytes(out, "used_memory_vm_total", scripts.vm_eval + scripts.vm_functions);
  out.Field("used_memory_functions", libraries.bytes());
  Bytes(out, "used_memory_scripts", scripts.script_bytes + libraries.bytes());
  Bytes(out, "maxmemory", settings.maxmemory);
  out.Field("maxmemory_policy", out.part<config::Config>().Text("maxmemory-policy"));
  Overheads(out, memory);
  const engine::ReplicationFigures replication = out.part<ProcessFacts>().replication();
  const int64_t for_replicas = replication.buffer_bytes - replication.backlog_bytes;
  out.Field("mem_not_counted_for_evict", out.engine.memory().log_bytes());
  out.Field("mem_replication_backlog", replication.backlog_bytes);
  out.Field("mem_total_replication_buffers", replication.buffer_bytes);
  out.Field("mem_clients_slaves", for_replicas + replication.transfer_bytes);
  out.Field("mem_clients_normal", ConnectionBytes(out));
  out.Field("mem_cluster_links", 0);
  out.Field("mem_aof_buffer", out.engine.memory().log_bytes());
  out.Field("mem_allocator", base::AllocatorName());
  out.Field("active_defrag_running", 0);
  out.Field("lazyfree_pending_objects", out.engine.background().pending());
  out.Field("lazyfreed_objects", out.engine.background().done());
}

}  // namespace sava::admin
