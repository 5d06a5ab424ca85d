// The parts of INFO: each function appends the lines of one section, without its heading.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "server/server.h"

namespace sava::server::info {

// What a section is written from, and where to.
struct Writer {
  Server& server;
  engine::Engine& engine;
  engine::Lane& lane;
  int64_t now_ms;
  std::string text;

  // "name:value" and a line end.
  template <typename T>
  void Field(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(text), "{}:{}\r\n", name, value);
  }
  template <typename... T>
  void Line(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
    text += "\r\n";
  }
  // Fields of features that are not built, all with one value.
  void Fields(std::initializer_list<std::string_view> names, std::string_view value) {
    for (const std::string_view name : names) Field(name, value);
  }
  // A setting as CONFIG GET shows it.
  std::string Setting(std::string_view name) const {
    const auto found = server.config().Get({&name, 1});
    return found.empty() ? std::string() : found[0].second;
  }
  uint64_t Total(engine::Counter engine::LaneStats::*counter) const {
    return engine.Total(counter);
  }
};

void ServerSection(Writer& out);
void ClientsSection(Writer& out);
void MemorySection(Writer& out);
void PersistenceSection(Writer& out);
void StatsSection(Writer& out);
void ReplicationSection(Writer& out);
void CpuSection(Writer& out);
void ModulesSection(Writer& out);
void CommandstatsSection(Writer& out);
void ErrorstatsSection(Writer& out);
void LatencystatsSection(Writer& out);
void ClusterSection(Writer& out);
void SavaSection(Writer& out);
void RatelimitSection(Writer& out);
void KeyspaceSection(Writer& out);

}  // namespace sava::server::info
