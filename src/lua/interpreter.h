// Interpreter: one sandboxed Lua 5.1 state for scripts and libraries of functions. It knows no
// keys, no locks and no clients: what a script asks of the server goes through the Host that each
// run names.
//
// Threads: an interpreter belongs to one thread. Nothing here is shared between interpreters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sava::lua {

// What `redis.*` asks for while a script runs.
class Host {
 public:
  enum class CallResult : uint8_t {
    kReplied,  // `reply` holds one RESP value in the script's protocol; an error is a reply too
    kUnwind    // the script is to stop here, whatever pcall it stands in, and will be run again
  };

  virtual ~Host() = default;
  // redis.call and redis.pcall. `resp` is 2 or 3. The arguments stay valid during the call.
  virtual CallResult Call(std::span<const std::string_view> args, int resp, std::string* reply) = 0;
  // redis.log; `level` is 0 (debug) to 3 (warning).
  virtual void Log(int level, std::string_view text) = 0;
  // redis.set_repl; bit 0: the log, bit 1: replicas.
  virtual void SetReplication(int flags) = 0;
  // redis.acl_check_cmd. kUnknown: there is no such command.
  enum class Access : uint8_t { kAllowed, kDenied, kUnknown };
  virtual Access CheckAccess(std::span<const std::string_view> args) = 0;
  // Asked every 100,000 instructions. True: the script is killed; no pcall survives that. Time
  // bounds, other clients and SCRIPT KILL are the host's affair.
  virtual bool Interrupted() = 0;
};

struct Limits {
  // Bytes that one run may hold on top of what the state held when it began (script-max-memory).
  size_t memory = size_t{256} << 20;
  // Longest source.
  size_t source = size_t{16} << 20;
  // getfenv, setfenv and newproxy are there (lua-enable-deprecated-api).
  bool deprecated_api = false;
};

enum class FunctionFlag : uint8_t {
  kNoWrites = 1,
  kAllowOom = 2,
  kAllowStale = 4,
  kNoCluster = 8,
  kAllowCrossSlotKeys = 16
};

// A function that a library registered.
struct Function {
  std::string name;
  std::string description;
  bool has_description = false;
  uint8_t flags = 0;  // of FunctionFlag
  int handle = 0;     // what Run takes
};

enum class RunResult : uint8_t {
  kReplied,  // `reply` is the RESP value of the script's result
  kFailed,   // `reply` is an error line in Redis's words, without "-" and CRLF
  kUnwound,  // the host said kUnwind
  kKilled    // the host said Interrupted; `reply` is empty, the host words the error
};

// How a run is to be named and fed.
struct Call {
  int handle = 0;
  std::string_view name{};  // the sha1, or the function's name: for error texts
  bool function =
      false;  // keys and arguments are parameters, not KEYS and ARGV; chunk @user_function
  std::span<const std::string_view> keys{};
  std::span<const std::string_view> args{};
  int client_resp = 2;  // protocol of the reply
};

class Interpreter {
 public:
  explicit Interpreter(const Limits& limits);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // A script's body, without its shebang line. Handles are positive; 0: `error` says why, in
  // Redis's words after "Error compiling script (new function): ".
  int Compile(std::string_view body, std::string* error);
  void Release(int handle);

  // Runs a script or a function. On kReplied and kFailed `reply` holds the answer.
  RunResult Run(const Call& call, Host* host, std::string* reply);
  // Whether the error that the last run ended with, or replied, came from an inner command and so
  // was counted already.
  bool error_counted() const;

  // Runs a library's source (without its shebang line) and collects what it registers. False:
  // `error` is in Redis's words, complete, without "ERR ". Nothing stays registered then.
  // `interrupted` is asked now and then, may be null; true ends the load ("FUNCTION LOAD timeout").
  bool LoadLibrary(std::string_view body, const std::function<bool()>& interrupted,
                   std::vector<Function>* functions, std::string* error);

  void SetLimits(const Limits& limits);
  size_t memory() const;
  // A piece of garbage collection; all of it.
  void CollectStep();
  void CollectAll();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sava::lua
