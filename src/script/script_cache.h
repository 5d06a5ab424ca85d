// ScriptCache: the scripts that clients have sent, found by the SHA-1 of their source, for all
// threads. What SCRIPT LOAD brought stays; of those that only EVAL brought, as many stay as
// kMostEvals.
//
// Thread safety: any thread. The lock is a leaf. A Script does not change but for its atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "script/shebang.h"

namespace sava::script {

// What has been learned of the keys that a script asks for.
enum class Conduct : uint8_t {
  kUnknown,
  kDeclared,  // it kept to the keys it was given
  kStrays     // it asked for others: it runs alone
};

struct Script {
  std::string sha;  // in lower case
  std::string source;
  ScriptHead head;
  std::atomic<Conduct> conduct{Conduct::kUnknown};
  std::atomic<bool> loaded{false};  // by SCRIPT LOAD
  std::atomic<bool> evicted{false};
  std::atomic<int64_t> used_ms{0};

  // Without the first line, but with its end: lines keep their numbers.
  std::string_view body() const { return std::string_view(source).substr(head.length); }
};

using ScriptPtr = std::shared_ptr<Script>;

// 40 digits in lower case.
std::string ShaOf(std::string_view source);

class ScriptCache {
 public:
  static constexpr size_t kMostEvals = 500;

  // nullptr: there is none. `sha`: in lower case.
  ScriptPtr Find(std::string_view sha) const;
  // One that was made ready to run. The one that is kept, which may have come first.
  ScriptPtr Add(ScriptPtr script, bool loaded, int64_t now_ms);
  void Flush();

  // Grows with each Flush: what a thread has compiled before is not to be run.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  size_t count() const;
  size_t bytes() const;
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  // REQUIRES: mutex_.
  void EvictOne();

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::string, ScriptPtr, NameHash, std::equal_to<>> scripts_;
  size_t evals_ = 0;  // of them, those that SCRIPT LOAD did not bring
  size_t bytes_ = 0;
  std::atomic<uint64_t> generation_{1};
  std::atomic<uint64_t> evicted_{0};
};

}  // namespace sava::script
