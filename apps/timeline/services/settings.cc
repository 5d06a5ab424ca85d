#include "services/settings.h"

#include <fmt/format.h>

#include <sstream>

#include "data/schema.h"

namespace timeline {

void Settings::Load(Connection& connection) {
  std::lock_guard lock(mutex_);
  std::istringstream text(MetaOf(connection, "settings"));
  int cache = 1, way = 0;
  std::int64_t front = 25, profile = 25;
  if (!(text >> cache >> front >> profile >> way)) return;
  use_cache = cache != 0;
  front_page = front;
  profile_page = profile;
  strategy = way == 0 ? Strategy::kUpdate : Strategy::kDelete;
}

bool Settings::Change(Connection& connection, bool cache, std::int64_t front, std::int64_t profile,
                      Strategy way) {
  std::lock_guard lock(mutex_);
  if (!SetMeta(connection, "settings",
               fmt::format("{} {} {} {}", cache ? 1 : 0, front, profile,
                           way == Strategy::kUpdate ? 0 : 1))) {
    return false;
  }
  use_cache = cache;
  front_page = front;
  profile_page = profile;
  strategy = way;
  return true;
}

}  // namespace timeline
