// The sections of INFO that are this room's; other rooms bring theirs.
#pragma once

#include "engine/info.h"

namespace sava::admin {

void ServerSection(engine::InfoWriter& out);
void MemorySection(engine::InfoWriter& out);
void StatsSection(engine::InfoWriter& out);
void CpuSection(engine::InfoWriter& out);
void ModulesSection(engine::InfoWriter& out);
void CommandstatsSection(engine::InfoWriter& out);
void ErrorstatsSection(engine::InfoWriter& out);
void LatencystatsSection(engine::InfoWriter& out);
void ClusterSection(engine::InfoWriter& out);
void SavaSection(engine::InfoWriter& out);
void RatelimitSection(engine::InfoWriter& out);
void KeyspaceSection(engine::InfoWriter& out);

}  // namespace sava::admin
