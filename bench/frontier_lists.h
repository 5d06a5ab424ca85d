// The URL scheduler as document S1 builds it (include/sava/documents), on the same command files as
// ours, with the document's log of memory accesses. For sava_frontier_lists and the benchmarks of
// chapter 5.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/frontier_access_log.h"
#include "cli/frontier_script.h"
#include "sava/documents/escalonador.h"
#include "types/frontier/url.h"

namespace sava::bench {

// Where accesses are told, as long as there is a log.
struct Tracer {
  cli::AccessLog* log = nullptr;
  uint64_t phase = 0;

  void Add(uint64_t id, bool write, const void* address, size_t size) const {
    if (log == nullptr) return;
    log->Add({phase, id, reinterpret_cast<uintptr_t>(address), size, write});
  }
};

// The document's ids of one structure's cells and items (its table 2).
class LoggedRastro {
 public:
  LoggedRastro(const Tracer* tracer, uint64_t cells, uint64_t items)
      : tracer_(tracer), cells_(cells), items_(items) {}

  template <typename T>
  void LeCelula(const documents::Celula<T>* cell) const {
    tracer_->Add(cells_, false, cell, sizeof(*cell));
  }
  template <typename T>
  void EscreveCelula(const documents::Celula<T>* cell) const {
    tracer_->Add(cells_, true, cell, sizeof(*cell));
  }
  template <typename T>
  void LeItem(const T* item) const {
    tracer_->Add(items_, false, item, sizeof(T));
  }
  template <typename T>
  void EscreveItem(const T* item) const {
    tracer_->Add(items_, true, item, sizeof(T));
  }

 private:
  const Tracer* tracer_;
  uint64_t cells_;
  uint64_t items_;
};

struct LoggedRastreador {
  using Rastro = LoggedRastro;
  Rastro DaFila() const { return {tracer, cli::kQueueCells, cli::kHostItems}; }
  Rastro DaLista(uint64_t n) const { return {tracer, cli::CellsOf(n), cli::UrlsOf(n)}; }

  const Tracer* tracer;
};

// The program of 2.3.2.
template <typename Scheduler>
class ListsProgram {
 public:
  ListsProgram(Scheduler* scheduler, bool breadth) : scheduler_(scheduler), breadth_(breadth) {}

  // `phase` is told the verb of every command before it runs.
  template <typename Phase>
  void Run(std::string_view script, const Phase& phase) {
    using cli::ScriptStep;
    cli::ScriptReader reader(script);
    for (ScriptStep step = reader.Next(); step.kind != ScriptStep::Kind::kEnd;
         step = reader.Next()) {
      if (step.kind == ScriptStep::Kind::kUrl) {
        Add(step.text);
      } else if (step.kind == ScriptStep::Kind::kCommand) {
        phase(step.verb);
        Execute(step);
      }
    }
  }

 private:
  // Ours has a limit to what it keeps; the document's has none.
  void Add(std::string_view text) {
    if (text.size() > types::kMaxUrlSize) return;
    const documents::Url url(text);
    if (url.isValid() && url.GetHost().size() <= types::kMaxUrlHostSize) scheduler_->AddUrl(url);
  }

  static std::string HostName(std::string_view text) {
    if (text.size() > types::kMaxUrlSize) return {};
    std::vector<char> room(types::UrlRoom(text.size()));
    return std::string(types::NormalizeUrlHost(types::UrlNorm::kUfmg, text, room.data()));
  }

  void Execute(const cli::ScriptStep& step) {
    using cli::ScriptVerb;
    switch (step.verb) {
      case ScriptVerb::kAddUrls:
        break;  // its URLs are steps of their own
      case ScriptVerb::kScheduleAll:
        return breadth_ ? scheduler_->EscalonaTudoBreadth() : scheduler_->EscalonaTudo();
      case ScriptVerb::kSchedule:
        return breadth_ ? scheduler_->EscalonaBreadth(step.count)
                        : scheduler_->Escalona(step.count);
      case ScriptVerb::kScheduleHost:
        return scheduler_->EscalonaHost(HostName(step.host), step.count);
      case ScriptVerb::kShowHost:
        return scheduler_->VerHost(HostName(step.host));
      case ScriptVerb::kListHosts:
        return scheduler_->ListaHosts();
      case ScriptVerb::kClearHost:
        return scheduler_->LimpaHost(HostName(step.host));
      case ScriptVerb::kClearAll:
        return scheduler_->LimpaTudo();
    }
  }

  Scheduler* scheduler_;
  bool breadth_;
};

}  // namespace sava::bench
