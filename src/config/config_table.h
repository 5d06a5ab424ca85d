// What Sava knows of every setting: one row per setting, and nothing about it elsewhere.
//
// A row says how the setting is called, what its values look like, whether it may change while the
// server runs, where the value lives, and, for features that do not exist yet, why anything but the
// default is refused. Values live either in a field of engine::Settings (the server acts on them)
// or as text in ConfigState::kept (accepted, checked and printed as Redis does, without effect).
//
// Thread safety: the table is constant. A ConfigState is plain data.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "config/settings.h"

namespace sava::config {

enum class Kind : uint8_t {
  kBool,             // yes or no
  kInteger,          // decimal within [min, max]
  kOctal,            // octal within [min, max]
  kMemory,           // bytes with units: 100, 1k, 1kb, 1m, 1mb, 1g, 1gb
  kMemoryOrPercent,  // the same, or 0% to 100%, which is held below zero
  kChoice,           // one word of a list
  kChoices,          // several words of a list, held as bits
  kText,
  kSpecial,  // own reading and printing
};

enum SettingFlag : uint32_t {
  kImmutable = 1U << 0,   // only at start
  kHidden = 1U << 1,      // not matched by patterns, only found by its exact name
  kManyWords = 1U << 2,   // takes a list: several words, or one text of words
  kSensitive = 1U << 3,   // never shown in error messages
  kProtected = 1U << 4,   // CONFIG SET only where enable-protected-configs allows it
  kNamesFile = 1U << 5,   // CONFIG SET reads the file again even if the name stays the same
  kWhenLoaded = 1U << 6,  // CONFIG SET is refused while data are loaded
};

// Where a value comes from. At start a list such as `save` grows with every line that gives it;
// CONFIG SET replaces it.
enum class Origin : uint8_t { kFirstLine, kLaterLine, kCommand };

struct ChoiceName {
  std::string_view name;
  int64_t value;
};

// Access to a number, truth value or choice of engine::Settings, or to a text of it.
struct Field {
  int64_t (*load)(const Settings&) = nullptr;
  void (*store)(Settings&, int64_t) = nullptr;
  std::string& (*text)(Settings&) = nullptr;
};

template <auto kMember>
constexpr Field In() {
  using Type = std::remove_reference_t<decltype(std::declval<Settings&>().*kMember)>;
  Field field;
  if constexpr (std::is_same_v<Type, std::string>) {
    field.text = [](Settings& s) -> std::string& { return s.*kMember; };
  } else {
    field.load = [](const Settings& s) { return static_cast<int64_t>(s.*kMember); };
    field.store = [](Settings& s, int64_t v) { s.*kMember = static_cast<Type>(v); };
  }
  return field;
}

using Words = std::span<const std::string>;

// Reading and printing of a setting that is more than one plain value.
struct Special {
  base::Status (*read)(Words words, Origin origin, Settings& settings) = nullptr;
  std::string (*print)(const Settings&) = nullptr;
  // What follows the name on each line of a configuration file. `all` asks for the parts that have
  // their default value too. Null: one line, the printed text in quotes.
  std::vector<std::string> (*lines)(const Settings&, bool all) = nullptr;
  // The lines of all files add up; an empty text starts from none.
  bool adds_up = false;
};

struct Setting {
  std::string_view name;
  Kind kind = Kind::kText;
  std::string_view alias;
  uint32_t flags = 0;
  int64_t min = 0;
  uint64_t max = 0;
  std::span<const ChoiceName> choices;
  Field field;
  std::string_view initial;  // the default of a setting that is only kept
  const Special* special = nullptr;
  base::Status (*check_text)(std::string_view) = nullptr;
  base::Status (*check_number)(int64_t) = nullptr;
  int64_t (*clamp)(int64_t) = nullptr;  // quietly moves a number into what makes sense
  std::string_view not_built;           // the missing feature: only the default is accepted

  bool has(SettingFlag flag) const { return (flags & flag) != 0; }
  bool kept() const { return special == nullptr && field.load == nullptr && field.text == nullptr; }

  constexpr Setting Also(std::string_view other_name) const {
    Setting copy = *this;
    copy.alias = other_name;
    return copy;
  }
  constexpr Setting With(uint32_t more_flags) const {
    Setting copy = *this;
    copy.flags |= more_flags;
    return copy;
  }
  constexpr Setting Clamped(int64_t (*function)(int64_t)) const {
    Setting copy = *this;
    copy.clamp = function;
    return copy;
  }
  constexpr Setting Checked(base::Status (*function)(std::string_view)) const {
    Setting copy = *this;
    copy.check_text = function;
    return copy;
  }
  constexpr Setting Checked(base::Status (*function)(int64_t)) const {
    Setting copy = *this;
    copy.check_number = function;
    return copy;
  }
  constexpr Setting NotBuilt(std::string_view feature) const {
    Setting copy = *this;
    copy.not_built = feature;
    return copy;
  }
};

// A word that may begin a line of a configuration file but is no setting.
struct Directive {
  std::string_view name;
  std::string_view refusal;  // empty: accepted without effect
};

// Every setting, ordered by name.
std::span<const Setting> AllSettings();
// By name or alias, whatever the case; null if there is none.
const Setting* FindSetting(std::string_view name);
const Directive* FindDirective(std::string_view name);
// The known name that looks most like `name`, empty if none is close.
std::string_view NearestName(std::string_view name);

// All values of all settings.
struct ConfigState {
  Settings settings;
  std::vector<std::string> kept;  // by the row's place in AllSettings(), as printed
};
ConfigState DefaultState();

// Gives `setting` the value in `words`; on an error `state` is unchanged and the text is what
// follows Redis's "CONFIG SET failed (...) - ".
base::Status ReadValue(const Setting& setting, Words words, Origin origin, ConfigState& state);
// The value as CONFIG GET shows it.
std::string PrintValue(const Setting& setting, const ConfigState& state);
// The lines of a configuration file that give the value, without the setting's name.
std::vector<std::string> FileLines(const Setting& setting, const ConfigState& state, bool all);
// True if both states hold the same value; sees what PrintValue does not show.
bool SameValue(const Setting& setting, const ConfigState& a, const ConfigState& b);

// Bytes with an optional unit, case ignored; the units without b are decimal. Too large a number
// gives the largest.
bool ParseMemory(std::string_view text, uint64_t* out);
// notify-keyspace-events: letters to NotifyFlag bits; false at an unknown letter.
bool ParseNotifyFlags(std::string_view letters, uint32_t* out);
// The letters in Redis's order. `lossless` adds the n that Redis leaves out after an A.
std::string NotifyFlagsText(uint32_t flags, bool lossless = false);

// The specials' rows, see config_special.cc.
extern const Special kBindSpecial;
extern const Special kHttpBindSpecial;
extern const Special kHttpHostsSpecial;
extern const Special kDirSpecial;
extern const Special kSaveSpecial;
extern const Special kOutputLimitSpecial;
extern const Special kOomValuesSpecial;
extern const Special kNotifySpecial;
extern const Special kPercentilesSpecial;
extern const Special kReplicaOfSpecial;
// See config_ratelimit.cc.
extern const Special kRateDefaultSpecial;
extern const Special kRateUserSpecial;
extern const Special kRateIpSpecial;
extern const Special kRateExemptSpecial;

}  // namespace sava::config
