// The two entities of the application, and pages of them. Times are Unix milliseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace timeline {

using Id = std::int64_t;

struct Post {
  Id id = 0;
  std::string title;
  std::string message;
  Id owner = 0;
  std::string display_name;
  std::string picture;
  std::int64_t created = 0;
};

struct User {
  Id id = 0;
  std::string email;
  std::string password;  // the password's Argon2id text; empty: nobody can sign in
  std::string display_name;
  std::string about;
  std::string picture;
  std::int64_t followers = 0;
  std::int64_t following = 0;
  bool administrator = false;
};

// What one request asks for: page `number` (from 0) of `size` posts; size -1 means all of them.
struct PageRequest {
  std::int64_t number = 0;
  std::int64_t size = 25;
};

struct PostPage {
  std::vector<Post> posts;
  bool more = false;
};

}  // namespace timeline
