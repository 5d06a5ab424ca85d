// What the commands of Bloom and cuckoo filters share.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/find_object.h"
#include "commands/key_context.h"
#include "types/filters/bloom.h"

namespace sava::commands {

inline constexpr std::string_view kFilterNotFound = "ERR not found";
inline constexpr std::string_view kFilterExists = "ERR item exists";

// The filter at the first argument. Replies an error and returns false when none is there.
template <typename Filter>
bool RequireFilter(KeyContext& context, Access access, Filter** filter,
                   std::string_view missing = kFilterNotFound) {
  if (!FindObject(context, context.arg(1), access, filter)) return false;
  if (*filter != nullptr) return true;
  context.Error(missing);
  return false;
}

// The hashes of the arguments from `first` on, after asking for the memory they will be looked up
// in: the misses of the cache of a whole batch overlap.
template <typename Filter>
std::vector<uint64_t> HashItems(KeyContext& context, size_t first, const Filter* filter) {
  std::vector<uint64_t> hashes;
  hashes.reserve(context.argc() - first);
  for (size_t i = first; i < context.argc(); ++i) {
    hashes.push_back(types::FilterHash(context.arg(i)));
    if (filter != nullptr) filter->Prefetch(hashes.back());
  }
  return hashes;
}

// A filter stands at the key now, or has changed there.
template <typename Filter>
void FilterChanged(KeyContext& context, std::unique_ptr<Filter> made, int64_t changes,
                   std::string_view event) {
  const std::string_view key = context.arg(1);
  made == nullptr ? context.Touched(key) : context.SetObject(key, std::move(made));
  context.Changed(changes);
  context.Notify(kNotifyModule, event, key);
}

}  // namespace sava::commands
