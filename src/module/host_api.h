// The part of the module API of Redis 7.0 and later, and of Valkey, that sava.so uses: our own
// declarations of what the API's documentation says. A host exports functions by name; Bind asks
// for each of them once, when the module is loaded.
//
// Functions that all hosts from 7.0 on have are required: without one of them Bind fails. The
// others are null where a host does not have them.
//
// Thread safety: written by Bind before any other thread can be there, read-only after that. Which
// function may be called on which thread is the host's rule: all of them on the main thread only,
// but for those that allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "module/host_command_info.h"

namespace sava::module::host {

// The host's own things, of which we only hold pointers.
struct Ctx;
struct Key;
struct String;
struct Io;
struct Digest;
struct Type;
struct Command;
struct BlockedClient;
struct CallReply;
struct InfoCtx;
struct KeyOptCtx;
struct ServerInfo;

inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr int kApiVersion = 1;

// OpenKey.
inline constexpr int kRead = 1 << 0;
inline constexpr int kWrite = 1 << 1;
inline constexpr int kNoTouch = 1 << 16;

enum KeyType : int { kEmptyKey = 0, kStringKey = 1, kModuleKey = 6 };

inline constexpr long long kNoExpire = -1;
inline constexpr long kPostponed = -1;

// GetContextFlags.
enum ContextFlag : int {
  kInLua = 1 << 0,
  kInMulti = 1 << 1,
  kReplicated = 1 << 12,
  kLoading = 1 << 13,
  kDenyBlocking = 1 << 21,
  kResp3 = 1 << 22,
};

// SetModuleOptions.
enum ModuleOption : int {
  kHandlesIoErrors = 1 << 0,
  kNoImplicitModified = 1 << 1,
  kHandlesAsyncLoad = 1 << 2,
  kHandlesSlotMigration = 1 << 5,
};

enum CallReplyType : int { kReplyArray = 3, kReplyNull = 4 };

struct Event {
  uint64_t id;
  uint64_t data_version;
};
inline constexpr Event kLoadingEvent = {3, 1};
inline constexpr Event kAsyncLoadEvent = {14, 1};
enum LoadingStep : uint64_t { kLoadingEnded = 3, kLoadingFailed = 4 };
enum AsyncLoadStep : uint64_t { kAsyncLoadStarted = 0, kAsyncLoadAborted = 1, kAsyncLoadDone = 2 };

using CommandFunction = int (*)(Ctx*, String** argv, int argc);
using EventFunction = void (*)(Ctx*, Event, uint64_t step, void* data);
using TimerFunction = void (*)(Ctx*, void* data);
using FreeFunction = void (*)(Ctx*, void* data);
using InfoFunction = void (*)(InfoCtx*, int for_crash_report);

// ---- types ----

inline constexpr uint64_t kTypeMethodsVersion = 4;
inline constexpr int kBeforeKeys = 1 << 0;

// The layout is the API's.
struct TypeMethods {
  uint64_t version;
  void* (*rdb_load)(Io*, int encoding_version);
  void (*rdb_save)(Io*, void* value);
  void (*aof_rewrite)(Io*, String* key, void* value);
  size_t (*mem_usage)(const void* value);
  void (*digest)(Digest*, void* value);
  void (*free)(void* value);
  int (*aux_load)(Io*, int encoding_version, int when);
  void (*aux_save)(Io*, int when);
  int aux_save_triggers;
  size_t (*free_effort)(String* key, const void* value);
  void (*unlink)(String* key, const void* value);
  void* (*copy)(String* from, String* to, const void* value);
  int (*defrag)(void* ctx, String* key, void** value);
  size_t (*mem_usage2)(KeyOptCtx*, const void* value, size_t samples);
  size_t (*free_effort2)(KeyOptCtx*, const void* value);
  void (*unlink2)(KeyOptCtx*, const void* value);
  void* (*copy2)(KeyOptCtx*, const void* value);
};

// ---- functions ----

// REQUIRED(result, name, parameters) for what 7.0 has, OPTIONAL for what came later.
#define SAVA_HOST_FUNCTIONS(REQUIRED, OPTIONAL)                                                    \
  REQUIRED(int, SetModuleAttribs, (Ctx*, const char* name, int version, int api))                  \
  REQUIRED(int, IsModuleNameBusy, (const char* name))                                              \
  REQUIRED(void, SetModuleOptions, (Ctx*, int options))                                            \
  REQUIRED(void, Log, (Ctx*, const char* level, const char* format, ...))                          \
  REQUIRED(int, GetContextFlags, (Ctx*))                                                           \
  REQUIRED(void*, Alloc, (size_t))                                                                 \
  REQUIRED(void*, TryAlloc, (size_t))                                                              \
  REQUIRED(void*, Calloc, (size_t count, size_t size))                                             \
  REQUIRED(void*, Realloc, (void*, size_t))                                                        \
  REQUIRED(void, Free, (void*))                                                                    \
  REQUIRED(size_t, MallocSize, (void*))                                                            \
  OPTIONAL(size_t, MallocUsableSize, (void*))                                                      \
  REQUIRED(                                                                                        \
      int, CreateCommand,                                                                          \
      (Ctx*, const char* name, CommandFunction, const char* flags, int first, int last, int step)) \
  REQUIRED(Command*, GetCommand, (Ctx*, const char* name))                                         \
  REQUIRED(int, SetCommandInfo, (Command*, const CommandInfo*))                                    \
  OPTIONAL(int, SetCommandACLCategories, (Command*, const char* categories))                       \
  OPTIONAL(int, AddACLCategory, (Ctx*, const char* name))                                          \
  REQUIRED(int, IsKeysPositionRequest, (Ctx*))                                                     \
  REQUIRED(void, KeyAtPosWithFlags, (Ctx*, int position, int flags))                               \
  REQUIRED(CallReply*, Call, (Ctx*, const char* name, const char* format, ...))                    \
  REQUIRED(int, CallReplyType, (CallReply*))                                                       \
  REQUIRED(CallReply*, CallReplyArrayElement, (CallReply*, size_t index))                          \
  REQUIRED(const char*, CallReplyStringPtr, (CallReply*, size_t * size))                           \
  REQUIRED(void, FreeCallReply, (CallReply*))                                                      \
  REQUIRED(const char*, StringPtrLen, (const String*, size_t* size))                               \
  REQUIRED(String*, CreateString, (Ctx*, const char*, size_t))                                     \
  REQUIRED(void, FreeString, (Ctx*, String*))                                                      \
  REQUIRED(Key*, OpenKey, (Ctx*, String * name, int mode))                                         \
  REQUIRED(void, CloseKey, (Key*))                                                                 \
  REQUIRED(int, KeyType, (Key*))                                                                   \
  REQUIRED(int, DeleteKey, (Key*))                                                                 \
  REQUIRED(long long, GetAbsExpire, (Key*))                                                        \
  REQUIRED(int, SetAbsExpire, (Key*, long long unix_ms))                                           \
  REQUIRED(char*, StringDMA, (Key*, size_t * size, int mode))                                      \
  REQUIRED(int, StringTruncate, (Key*, size_t size))                                               \
  REQUIRED(int, StringSet, (Key*, String*))                                                        \
  REQUIRED(Type*, ModuleTypeGetType, (Key*))                                                       \
  REQUIRED(void*, ModuleTypeGetValue, (Key*))                                                      \
  REQUIRED(int, ModuleTypeSetValue, (Key*, Type*, void* value))                                    \
  REQUIRED(int, SignalModifiedKey, (Ctx*, String * name))                                          \
  REQUIRED(void, SignalKeyAsReady, (Ctx*, String * name))                                          \
  REQUIRED(int, NotifyKeyspaceEvent, (Ctx*, int cls, const char* event, String* key))              \
  REQUIRED(int, Replicate, (Ctx*, const char* command, const char* format, ...))                   \
  REQUIRED(int, ReplicateVerbatim, (Ctx*))                                                         \
  REQUIRED(long long, Milliseconds, ())                                                            \
  REQUIRED(void, GetRandomBytes, (unsigned char*, size_t))                                         \
  REQUIRED(int, ReplyWithLongLong, (Ctx*, long long))                                              \
  REQUIRED(int, ReplyWithSimpleString, (Ctx*, const char*))                                        \
  REQUIRED(int, ReplyWithError, (Ctx*, const char*))                                               \
  REQUIRED(int, ReplyWithStringBuffer, (Ctx*, const char*, size_t))                                \
  REQUIRED(int, ReplyWithVerbatimStringType, (Ctx*, const char*, size_t, const char* type))        \
  REQUIRED(int, ReplyWithArray, (Ctx*, long count))                                                \
  REQUIRED(int, ReplyWithMap, (Ctx*, long count))                                                  \
  REQUIRED(int, ReplyWithSet, (Ctx*, long count))                                                  \
  REQUIRED(int, ReplyWithNull, (Ctx*))                                                             \
  REQUIRED(int, ReplyWithNullArray, (Ctx*))                                                        \
  REQUIRED(int, ReplyWithDouble, (Ctx*, double))                                                   \
  REQUIRED(int, ReplyWithBool, (Ctx*, int))                                                        \
  REQUIRED(int, ReplyWithBigNumber, (Ctx*, const char*, size_t))                                   \
  REQUIRED(BlockedClient*, BlockClientOnKeys,                                                      \
           (Ctx*, CommandFunction reply, CommandFunction timeout, FreeFunction free,               \
            long long timeout_ms, String** keys, int count, void* data))                           \
  REQUIRED(void*, GetBlockedClientPrivateData, (Ctx*))                                             \
  REQUIRED(uint64_t, CreateTimer, (Ctx*, long long ms, TimerFunction, void* data))                 \
  REQUIRED(int, StopTimer, (Ctx*, uint64_t id, void** data))                                       \
  REQUIRED(Type*, CreateDataType, (Ctx*, const char* name, int version, TypeMethods*))             \
  REQUIRED(void, SaveSigned, (Io*, int64_t))                                                       \
  REQUIRED(void, SaveUnsigned, (Io*, uint64_t))                                                    \
  REQUIRED(void, SaveFloat, (Io*, float))                                                          \
  REQUIRED(void, SaveDouble, (Io*, double))                                                        \
  REQUIRED(void, SaveStringBuffer, (Io*, const char*, size_t))                                     \
  REQUIRED(int64_t, LoadSigned, (Io*))                                                             \
  REQUIRED(uint64_t, LoadUnsigned, (Io*))                                                          \
  REQUIRED(float, LoadFloat, (Io*))                                                                \
  REQUIRED(double, LoadDouble, (Io*))                                                              \
  REQUIRED(char*, LoadStringBuffer, (Io*, size_t * size))                                          \
  REQUIRED(int, IsIOError, (Io*))                                                                  \
  REQUIRED(void, EmitAOF, (Io*, const char* command, const char* format, ...))                     \
  REQUIRED(void, DigestAddStringBuffer, (Digest*, const char*, size_t))                            \
  REQUIRED(void, DigestEndSequence, (Digest*))                                                     \
  REQUIRED(int, SubscribeToServerEvent, (Ctx*, Event, EventFunction))                              \
  REQUIRED(ServerInfo*, GetServerInfo, (Ctx*, const char* section))                                \
  REQUIRED(void, FreeServerInfo, (Ctx*, ServerInfo*))                                              \
  REQUIRED(unsigned long long, ServerInfoGetFieldUnsigned,                                         \
           (ServerInfo*, const char* field, int* error))                                           \
  REQUIRED(const char*, ServerInfoGetFieldC, (ServerInfo*, const char* field))                     \
  REQUIRED(int, RegisterInfoFunc, (Ctx*, InfoFunction))                                            \
  REQUIRED(int, InfoAddSection, (InfoCtx*, const char* name))                                      \
  REQUIRED(int, InfoAddFieldCString, (InfoCtx*, const char* field, const char* value))             \
  REQUIRED(int, InfoAddFieldULongLong, (InfoCtx*, const char* field, unsigned long long))

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define SAVA_HOST_DECLARE(result, name, parameters) extern result(*name) parameters;
SAVA_HOST_FUNCTIONS(SAVA_HOST_DECLARE, SAVA_HOST_DECLARE)
#undef SAVA_HOST_DECLARE

// The first word of the context that OnLoad gets. 0: *pointer is the function.
using LookUp = int (*)(const char* name, void** pointer);

// Fills in all of the above. Returns the first required name that the host does not export, nullptr
// when all are there; then the functions that allocate may be used.
const char* Bind(LookUp look_up);
bool bound();
// Whether the host also answers to Valkey's names.
bool IsValkey(LookUp look_up);

}  // namespace sava::module::host
