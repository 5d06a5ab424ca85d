// Tables, in one of two layouts, and what is kept about the database as a whole.
//   document: the followed and following ids of a user are one column each; posts have no index
//             but their primary key, as in the document.
//   indexed:  a table of follows, and indexes for every question the application asks.
#pragma once

#include <optional>
#include <string>

#include "data/sql.h"

namespace timeline {

enum class Layout { kDocument, kIndexed };

std::optional<Layout> LayoutOf(std::string_view name);
const char* NameOf(Layout layout);

// Creates what is missing. An existing database keeps its layout; asking for the other one is an
// error. `layout` is set to the layout found or made.
bool PrepareSchema(Connection& connection, bool mariadb, std::optional<Layout> wanted,
                   Layout* layout, std::string* error);

// The indexes of a layout, apart from the tables so that bulk loading can make them last.
bool CreateIndexes(Connection& connection, Layout layout, std::string* error);

// Small texts by name: layout, identity, secret, settings.
std::string MetaOf(Connection& connection, const std::string& name);
bool SetMeta(Connection& connection, const std::string& name, const std::string& value);

}  // namespace timeline
