// Object: what the keyspace, the journal, replication and the module know of a value that is not a
// plain string. A type derives from it and owns its saving, loading, size, copy and release;
// nothing else in the house knows a type by name.
//
// Thread safety: an Object is used under the lock of its key's stripe. Free is called without any
// lock, on any thread, once nobody can reach the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sava::types {

class AuxData;
class DigestSink;
class Writer;
class Reader;
class Object;

// How it is told that a value has lost parts whose time had come.
struct PartEffect {
  std::string_view command;  // with the key and the parts: removes them
  std::string_view event;
  char event_class = '\0';  // a letter of notify-keyspace-events
};

// A store of the process that values of a type share, for MEMORY STATS.
struct SharedStore {
  std::string_view name;
  size_t (*count)();
  size_t (*bytes)();
};

// What a value of a native type becomes for a stock Redis.
struct StockForm {
  std::string_view name;  // plural, for people; empty: there is none
  uint8_t rdb_type = 0;
  bool empty = false;  // nothing would be in it, and Redis has no such value
};

// One per type, static. What stands below module_id only some types have.
struct TypeInfo {
  std::string_view name;  // what TYPE answers
  // The RDB value types this type can read; the first is the one it writes. A native type has only
  // kRdbModule, and a module id.
  const uint8_t* rdb_types;
  size_t rdb_type_count;
  // Reads a value of one of its RDB types; nullptr when the bytes are not a valid value.
  std::unique_ptr<Object> (*load)(uint8_t rdb_type, Reader& in);
  uint64_t module_id = 0;
  // What its values share in files; nullptr: nothing.
  AuxData* (*aux)() = nullptr;
  // The RDB version that a reader has to know for the values there are now; nullptr: any.
  uint16_t (*rdb_version)() = nullptr;
  PartEffect part_effect{};
  std::span<const SharedStore> shared_stores{};
  // The number of the type in Redis, with which DEBUG DIGEST begins; 5: a module's, and its name.
  uint8_t digest_number = 5;
};

class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual const TypeInfo& type() const = 0;
  // What OBJECT ENCODING answers.
  virtual std::string_view encoding() const = 0;
  // Elements, for deciding where to free it and for DEBUG OBJECT.
  virtual size_t size() const = 0;
  // Parts kept dictionary-encoded, for DEBUG OBJECT.
  virtual size_t encoded_blocks() const { return 0; }
  // Bytes held, looking at no more than `samples` elements (0: all).
  virtual size_t MemoryUsage(size_t samples) const = 0;
  virtual std::unique_ptr<Object> Copy() const = 0;
  // Save writes what follows this type byte; of a native type that begins with the module id, which
  // load does not get to see again.
  virtual uint8_t rdb_type() const = 0;
  virtual void Save(Writer& out) const = 0;
  // Calls `add` for every element in a canonical form: equal values give equal calls.
  virtual void Digest(const std::function<void(std::string_view)>& add) const = 0;
  // The same for DEBUG DIGEST; a type that Redis has gives what Redis would.
  virtual void DigestAsRedis(DigestSink& out) const;

  // What it can be saved as for a stock Redis 7.0, which would refuse what Save writes: as it is at
  // `now`. SaveStockForm writes what follows the key then.
  virtual StockForm stock_form(int64_t now) const {
    static_cast<void>(now);
    return {};
  }
  virtual void SaveStockForm(Writer& out, int64_t now) const {
    static_cast<void>(out), static_cast<void>(now);
  }

  // Emits commands that make the value anew at `key`; false, and nothing was emitted, when there
  // are none, so that only RESTORE does. Only for types that Redis has.
  using CommandSink = std::function<void(std::span<const std::string_view> words)>;
  virtual bool Rebuild(std::string_view key, const CommandSink& emit) const {
    static_cast<void>(key), static_cast<void>(emit);
    return false;
  }

  // ---- parts that go by themselves ----
  // When (Unix ms) a part of it is past its time and it wants to be visited; -1: never.
  virtual int64_t next_deadline() const { return -1; }
  // Removes parts that are past their time, looking at no more than `budget`, and appends their
  // names. True when there may be more.
  virtual bool RemoveExpired(int64_t now, size_t budget, std::vector<std::string>* names) {
    static_cast<void>(now), static_cast<void>(budget), static_cast<void>(names);
    return false;
  }
  // Whether it has such a part and its time has come; and its removal.
  virtual bool IsPartExpired(std::string_view part, int64_t now) const {
    static_cast<void>(part), static_cast<void>(now);
    return false;
  }
  virtual bool RemovePart(std::string_view part) {
    static_cast<void>(part);
    return false;
  }
  // Which of the keyspace's notes to visit it is the valid one: 1 … 7, changed with every note.
  virtual uint8_t deadline_tag() const { return 0; }
  virtual void set_deadline_tag(uint8_t tag) { static_cast<void>(tag); }

  // Asks for the memory that a look-up of an element will need: step 0 first for all elements of a
  // batch, then step 1, which reads what step 0 asked for.
  virtual void Prefetch(std::string_view element, int step) const {
    static_cast<void>(element), static_cast<void>(step);
  }

  // ---- saving a large value while it changes ----
  // Whether it must be saved in pieces rather than by Save.
  virtual bool large() const { return false; }
  // Saves the value as it is now. Its bytes come in pieces: some at once, some by SavePieces, some
  // by later changes of the value, each before it changes what was not saved yet. Together, in the
  // order in which `sink` gets them, they are what Save writes or an equivalent of it.
  using PieceSink = std::function<void(std::string_view bytes)>;
  virtual void BeginCut(const PieceSink& sink, bool refer) {
    static_cast<void>(sink);
    static_cast<void>(refer);
  }
  // Hands on some `budget` bytes; true when all is saved.
  virtual bool SavePieces(size_t budget) {
    static_cast<void>(budget);
    return true;
  }
  virtual void AbortCut() {}
};

}  // namespace sava::types
