// Origin: where a command comes from, described by what the command may do.
#pragma once

namespace sava::engine {

struct Origin {
  // It was accepted before: memory, output, pauses, loading and refused writes do not stop
  // it, and it may not fail for want of memory.
  bool admitted = false;
  bool logged = true;   // its effects are recorded for the journal
  bool expires = true;  // keys whose time is over are gone for it
  bool wakes = true;    // its changes wake clients that wait for them
  bool blocks = true;   // it may wait
  bool renames = true;  // it calls commands by the names that rename-command gives them
  // Though it is admitted: without memory it fails with an error, as a client's command would.
  bool fails = false;
};

inline constexpr Origin kFromClient{};
// From a client that gets each answer at once (HTTP).
inline constexpr Origin kFromRequest{.blocks = false, .renames = false};
// From a log that is loaded: what happened before happens again.
inline constexpr Origin kFromLog{.admitted = true,
                                 .logged = false,
                                 .expires = false,
                                 .wakes = false,
                                 .blocks = false,
                                 .renames = false};
// From this server's master: it was accepted there, and what expires there is told.
inline constexpr Origin kFromMaster{
    .admitted = true, .expires = false, .blocks = false, .renames = false, .fails = true};
// The server's own work: expiry, eviction, the limiter's keys.
inline constexpr Origin kFromServer{.admitted = true, .blocks = false, .renames = false};

}  // namespace sava::engine
