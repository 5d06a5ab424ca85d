// What must hold when any bytes reach the interpreter: as a whole script, or as the input of one of
// its libraries. Shared by the fuzz targets and by the unit test that replays their corpora.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lua/interpreter.h"

namespace sava::lua {

// Answers commands by what they say, and ends what takes long.
class FuzzHost : public Host {
 public:
  CallResult Call(std::span<const std::string_view> args, int, std::string* reply) override {
    if (args[0] == "unwind") return CallResult::kUnwind;
    // Any bytes as a reply, even such as no command gives.
    *reply = args.size() > 1 ? std::string(args[1]) : "+OK\r\n";
    return CallResult::kReplied;
  }
  void Log(int, std::string_view) override {}
  void SetReplication(int) override {}
  Access CheckAccess(std::span<const std::string_view>) override { return Access::kDenied; }
  bool Interrupted() override { return ++asked_ > 3; }

 private:
  int asked_ = 0;
};

class LuaFuzzer {
 public:
  // Runs a script with one key and the arguments. Empty if all is well, otherwise what went wrong.
  std::string Run(std::string_view body, std::span<const std::string_view> args, int resp = 2) {
    std::string error;
    const int handle = interpreter_.Compile(body, &error);
    if (handle == 0) return error.empty() ? "a refusal without a reason" : Sound();
    const std::string_view keys[] = {"key"};
    FuzzHost host;
    std::string reply;
    const RunResult result = interpreter_.Run(
        {.handle = handle, .name = "sha", .keys = keys, .args = args, .client_resp = resp}, &host,
        &reply);
    interpreter_.Release(handle);
    if (result == RunResult::kReplied && !reply.ends_with("\r\n")) return "a reply without an end";
    if (result == RunResult::kFailed && reply.starts_with("ERR user_script:1: not the same")) {
      return reply;
    }
    if (result == RunResult::kFailed && (reply.empty() || reply.find('\n') != std::string::npos)) {
      return "an error that is no line";
    }
    return Sound();
  }
  // As a library.
  std::string Load(std::string_view body) {
    std::vector<Function> functions;
    std::string error;
    int asked = 0;
    const bool loaded = interpreter_.LoadLibrary(
        body, [&] { return ++asked > 3; }, &functions, &error);
    if (loaded == functions.empty()) return "a library without functions";
    if (!loaded && error.empty()) return "a refusal without a reason";
    for (const Function& function : functions) interpreter_.Release(function.handle);
    return Sound();
  }

 private:
  // Whatever ran, the next script finds the state as the first one did.
  std::string Sound() {
    constexpr std::string_view kProbe =
        "return type(redis.call) .. type(cjson.encode) .. ('a'):upper() .. #KEYS .. "
        "redis.sha1hex('')";
    std::string error;
    if (probe_ == 0) probe_ = interpreter_.Compile(kProbe, &error);
    FuzzHost host;
    std::string reply;
    if (interpreter_.Run({.handle = probe_, .name = "probe"}, &host, &reply) !=
            RunResult::kReplied ||
        reply != "$58\r\nfunctionfunctionA0da39a3ee5e6b4b0d3255bfef95601890afd80709\r\n") {
      return "the next script sees another world: " + reply;
    }
    return {};
  }

  Interpreter interpreter_{Limits{.memory = 8 << 20, .source = 1 << 16, .deprecated_api = true}};
  int probe_ = 0;
};

// The first byte says what the rest is given to.
inline std::string CheckLua(std::string_view bytes) {
  static LuaFuzzer& fuzzer = *new LuaFuzzer;
  if (bytes.empty()) return {};
  const auto choice = static_cast<unsigned char>(bytes[0]);
  bytes.remove_prefix(1);
  // What reads a value must write it again in a form that reads the same.
  constexpr std::string_view kJson =
      "local t = cjson.decode(ARGV[1]) local s = cjson.encode(t) "
      "if #cjson.encode(cjson.decode(s)) ~= #s then error('not the same') end return s";
  constexpr std::string_view kPack = "local t = {cmsgpack.unpack(ARGV[1])} return cmsgpack.pack(t)";
  constexpr std::string_view kStruct =
      "local n = struct.size(ARGV[1]) return {struct.unpack(ARGV[1], ARGV[2] .. ('x'):rep(n % "
      "1000), n % 7)}";
  constexpr std::string_view kStructPack =
      "return struct.pack(ARGV[1], 1, -1, 2.5, ARGV[2], 5, 2^63, ARGV[2])";
  constexpr std::string_view kPattern =
      "local s, p = ARGV[2], ARGV[1] local t = {string.find(s, p)} "
      "for a in s:gmatch(p) do t[#t + 1] = a end t[#t + 1] = s:gsub(p, '%0%1') return t";
  constexpr std::string_view kReply = "redis.setresp(3) return redis.pcall('x', ARGV[1])";
  constexpr std::string_view kTexts[] = {kJson, kPack, kStruct, kStructPack, kPattern, kReply};
  const size_t middle = bytes.find('\0');
  const std::string_view args[] = {bytes.substr(0, middle), middle == std::string_view::npos
                                                                ? std::string_view()
                                                                : bytes.substr(middle + 1)};
  switch (choice % 8) {
    case 6:
      return fuzzer.Run(bytes, {}, choice & 8 ? 3 : 2);
    case 7:
      return fuzzer.Load(bytes);
    case 1:
    case 5: {
      // Their input may hold zero bytes.
      const std::string_view whole[] = {bytes};
      return fuzzer.Run(kTexts[choice % 8], whole, choice & 8 ? 3 : 2);
    }
    default:
      return fuzzer.Run(kTexts[choice % 8], args, choice & 8 ? 3 : 2);
  }
}

}  // namespace sava::lua
