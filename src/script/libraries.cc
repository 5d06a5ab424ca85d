#include "script/libraries.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace sava::script {

Function* Catalog::Find(std::string_view name) const {
  const auto it = functions.find(base::ToLower(name));
  return it == functions.end() ? nullptr : it->second;
}

base::Status Catalog::Add(const LibraryPtr& library) {
  for (const auto& function : library->functions) {
    if (functions.contains(base::ToLower(function->info.name))) {
      return base::Error{fmt::format("Function {} already exists", function->info.name)};
    }
  }
  for (const auto& function : library->functions) {
    functions.emplace(base::ToLower(function->info.name), function.get());
  }
  libraries[library->name] = library;
  return {};
}

void Catalog::Remove(const std::string& name) {
  const auto it = libraries.find(name);
  if (it == libraries.end()) return;
  for (const auto& function : it->second->functions) {
    functions.erase(base::ToLower(function->info.name));
  }
  libraries.erase(it);
}

base::Result<LibraryPtr> Compile(lua::Interpreter& interpreter, std::string_view code,
                                 const std::function<bool()>& interrupted,
                                 std::vector<int>* handles) {
  const auto head = ReadLibraryHead(code);
  if (!head) return base::Error{head.error()};
  auto library = std::make_shared<Library>();
  library->name = head.value().name;
  library->code = code;
  library->head = head.value().length;
  std::vector<lua::Function> functions;
  std::string error;
  if (!interpreter.LoadLibrary(library->body(), interrupted, &functions, &error)) {
    return base::Error{std::move(error)};
  }
  if (functions.empty()) return base::Error{"No functions registered"};
  for (lua::Function& info : functions) {
    handles->push_back(info.handle);
    auto function = std::make_unique<Function>();
    function->info = std::move(info);
    function->library = library.get();
    function->index = library->functions.size();
    library->functions.push_back(std::move(function));
  }
  return library;
}

CatalogPtr Libraries::last() const {
  const std::lock_guard lock(mutex_);
  return catalog_;
}

CatalogPtr Libraries::Now(lua::Interpreter& interpreter) {
  CatalogPtr now = last();
  const uint64_t generation = sources_.generation();
  if (now->generation == generation) return now;
  auto made = std::make_shared<Catalog>();
  made->generation = generation;
  for (const std::string& code : sources_.sources()) {
    std::vector<int> handles;
    auto library = Compile(interpreter, code, nullptr, &handles);
    const base::Status status =
        library ? made->Add(Judged(library.value())) : base::Error{library.error()};
    for (const int handle : handles) interpreter.Release(handle);
    if (!status) {
      spdlog::warn("The function library '{}' cannot be used: {}",
                   engine::FunctionLibraries::NameOf(code), status.error());
    }
  }
  const std::lock_guard lock(mutex_);
  if (catalog_->generation < generation) catalog_ = made;
  return catalog_;
}

LibraryPtr Libraries::Judged(LibraryPtr library) const {
  if (strays_(library->code)) {
    for (const auto& function : library->functions) function->conduct = Conduct::kStrays;
  }
  return library;
}

void Libraries::Replace(std::shared_ptr<Catalog> catalog) {
  catalog->generation = sources_.generation();
  const std::lock_guard lock(mutex_);
  catalog_ = std::move(catalog);
}

}  // namespace sava::script
