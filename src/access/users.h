// Users: by name, what each may do; the file they are kept in.
//
// Thread safety: changed with the gate closed, or before there are threads; read inside the gate.
// A user is never changed in place: it is replaced, the listeners (the engine, which re-points its
// clients) are told, and the old one is freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "access/permissions.h"
#include "base/result.h"
#include "config/settings.h"

namespace sava::access {

class Users {
 public:
  using Map = std::map<std::string, std::unique_ptr<const User>, std::less<>>;
  // Called after each change, with the session that made it (0: none). What the old users were is
  // valid until it returns.
  using Listener = std::function<void(uint64_t session)>;

  // There is the user `default`, with the password of requirepass if there is one.
  Users(const commands::CommandTable* table, const config::Settings* settings);

  const Map& all() const { return users_; }
  // nullptr: no user has this name.
  const User* Find(std::string_view name) const;
  const User& default_user() const { return *default_; }
  // Clients need no password.
  bool open() const { return default_->on && default_->nopass; }
  // Whose rules limit a client of this name; nullptr: none do. REQUIRES: there is such a user.
  const User* RulesFor(std::string_view name) const {
    const User* const user = Find(name);
    return user->everything() ? nullptr : user;
  }
  // The user, when the password is right and the user is on. Takes as long for an unknown name.
  const User* Authenticate(std::string_view name, std::string_view password) const;

  // ACL SETUSER. The error is complete, but for its code.
  base::Status Set(std::string_view name, const std::vector<std::string>& rules, uint64_t session);
  // How many of the names there were. REQUIRES: `default` is none of them.
  size_t Delete(const std::vector<std::string_view>& names, uint64_t session);
  // requirepass was set: the password of `default`; empty: it needs none.
  void SetDefaultPassword(std::string_view password);

  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // ---- files ----
  // At start: the users of the file, or of the `user` lines of the configuration.
  base::Status Open();
  bool has_file() const { return !file_.empty(); }
  // ACL LOAD and SAVE. REQUIRES: has_file().
  base::Status Load(uint64_t session);
  base::Status Save() const;
  // All users as lines of a configuration file, without the word `user`; `default` is left out when
  // it is as the settings make it.
  std::vector<std::string> ConfigLines() const;
  // The same as an ACL file.
  std::string FileText() const;
  // Reads such a text; `source` names it in errors. Without `default` that user is as in a new
  // server.
  base::Result<Map> Parse(std::string_view text, std::string_view source) const;

 private:
  bool all_channels() const { return settings_->acl_pubsub_all_channels; }
  std::unique_ptr<User> NewDefault() const;
  void Replace(Map users, uint64_t session);
  void Changed(uint64_t session);
  base::Status ParseLine(std::string_view line, Map* users) const;
  base::Status OpenLines();

  const commands::CommandTable* const table_;
  const config::Settings* const settings_;
  Map users_;
  const User* default_ = nullptr;
  std::vector<Listener> listeners_;
  std::string file_;  // its absolute path; empty: none
};

}  // namespace sava::access
