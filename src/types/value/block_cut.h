// BlockCut: saves a value that consists of numbered blocks while the value goes on changing. Each
// block is saved once, as it was when the cut began: by SaveSome in order, or, when it is about to
// change before its turn, by BeforeChange. Blocks therefore say their number themselves.
//
// Used by the types whose Object::BeginCut, SavePieces and AbortCut hand on to it; costs a pointer
// while no cut is under way. Thread safety: as the object it belongs to.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "types/value/object.h"
#include "types/value/save.h"

namespace sava::types {

class BlockCut {
 public:
  // Writes the items of one block.
  using SaveBlock = std::function<void(size_t block, Writer& out)>;

  // `head` is what stands before the blocks; `blocks` is how many there are now. A module value
  // ends with a mark.
  void Begin(const Object::PieceSink& sink, std::string_view head, size_t blocks, SaveBlock save,
             bool module = true) {
    sink(head);
    state_ = std::make_unique<State>();
    state_->sink = sink;
    state_->save = std::move(save);
    state_->saved.resize(blocks);
    state_->module = module;
  }

  bool active() const { return state_ != nullptr; }

  // To be called before a block changes; blocks that came after the cut need nothing.
  void BeforeChange(size_t block) {
    if (state_ != nullptr && block < state_->saved.size() && !state_->saved[block]) Save(block);
  }

  // Hands on some `budget` bytes; true when all is saved, the end mark included.
  bool SaveSome(size_t budget) {
    if (state_ == nullptr) return true;
    size_t done = 0;
    for (; state_->next < state_->saved.size() && done < budget; ++state_->next) {
      if (!state_->saved[state_->next]) done += Save(state_->next);
    }
    if (state_->next < state_->saved.size()) return false;
    std::string end;
    if (state_->module) {
      Writer out(&end);
      out.ModuleEnd();
    }
    const Object::PieceSink sink = std::move(state_->sink);
    Abort();
    sink(end);
    return true;
  }

  void Abort() { state_.reset(); }

 private:
  static constexpr size_t kKeptScratch = 1 << 20;

  struct State {
    Object::PieceSink sink;
    SaveBlock save;
    std::vector<bool> saved;
    size_t next = 0;
    bool module = true;
    std::string scratch;
  };

  size_t Save(size_t block) {
    state_->saved[block] = true;
    std::string& bytes = state_->scratch;
    bytes.clear();
    {
      Writer out(&bytes);
      state_->save(block, out);
    }
    state_->sink(bytes);
    const size_t size = bytes.size();
    if (bytes.capacity() > kKeptScratch) bytes = {};
    return size;
  }

  std::unique_ptr<State> state_;
};

}  // namespace sava::types
