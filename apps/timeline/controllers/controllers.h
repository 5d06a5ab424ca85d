// The application's pages: each function registers the routes of one controller.
#pragma once

#include <httplib.h>

#include "services/application.h"

namespace timeline {

void AddWelcomeController(httplib::Server* server, Application* application);
void AddFeedController(httplib::Server* server, Application* application);
void AddAdminController(httplib::Server* server, Application* application);

}  // namespace timeline
