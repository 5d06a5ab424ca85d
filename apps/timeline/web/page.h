// Pages as HTML and their parts as JSON. Everything people wrote is escaped here.
#pragma once

#include <string>
#include <vector>

#include "data/model.h"

namespace timeline {

std::string Escape(std::string_view text);
std::string TimeText(std::int64_t milliseconds);

struct PageFrame {
  std::string title;
  Id user = 0;  // who is signed in; 0: nobody
  bool administrator = false;
  std::string form_token;
  std::string message;  // shown above the content
};

std::string WholePage(const PageFrame& frame, const std::string& content);
// A form that changes something: carries the token.
std::string Form(const PageFrame& frame, const std::string& action, const std::string& fields,
                 const std::string& css = "");

std::string PostsHtml(const PageFrame& frame, const PostPage& page, const std::string& path,
                      std::int64_t number);
std::string PostsJson(const PostPage& page, std::int64_t number);
std::string PeopleHtml(const std::vector<User>& users);
std::string PeopleJson(const std::vector<User>& users);
std::string UserJson(const User& user);
std::string PictureHtml(const std::string& picture, const std::string& name);

extern const char* const kStyle;
extern const char* const kScript;

}  // namespace timeline
