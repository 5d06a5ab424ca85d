// FilaEncadeada<T>: the linked queue of document S1 (2.1.1), first in, first out, with a head cell
// before the first element. Costs as in the document's 3.1.1: O(1), but for the destructor, print
// and clear, which take O(n).
//
//   sava::documents::FilaEncadeada<int> fila;
//   fila.push_back(7);
//   int primeiro = fila.pop_front();
//
// pop_front, print and clear of an empty queue throw ExcecaoEmpty. T can be copied; print needs
// `<<` for it. Not thread-safe.
#pragma once

#include <cstddef>
#include <iostream>
#include <ostream>
#include <utility>

#include "sava/documents/celula.h"
#include "sava/documents/excecoes.h"

namespace sava::documents {

template <typename T, typename Rastro = SemRastro>
class FilaEncadeada {
 public:
  explicit FilaEncadeada(Rastro rastro = Rastro())
      : rastro_(std::move(rastro)), head_(new Celula<T>), tail_(head_) {
    rastro_.EscreveCelula(head_);
  }
  ~FilaEncadeada() {
    if (!empty()) clear();
    delete head_;
  }
  FilaEncadeada(const FilaEncadeada&) = delete;
  FilaEncadeada& operator=(const FilaEncadeada&) = delete;

  std::size_t size() const { return length_; }
  bool empty() const { return length_ == 0; }

  void push_back(const T& item) {
    tail_->next = NovaCelula<T>(item, nullptr);
    tail_ = tail_->next;
    rastro_.EscreveCelula(tail_);
    rastro_.EscreveItem(tail_->item);
    ++length_;
  }

  T pop_front() {
    if (empty()) throw ExcecaoEmpty("pop_front");
    Celula<T>* celula = head_->next;
    rastro_.LeCelula(celula);
    rastro_.LeItem(celula->item);
    head_->next = celula->next;
    rastro_.EscreveCelula(head_);
    if (celula == tail_) tail_ = head_;
    --length_;
    return LiberaCelula(celula);
  }

  // One element a line.
  void print(std::ostream& saida = std::cout) const {
    if (empty()) throw ExcecaoEmpty("print");
    for (const Celula<T>* celula = head_->next; celula != nullptr; celula = celula->next) {
      rastro_.LeCelula(celula);
      rastro_.LeItem(celula->item);
      saida << *celula->item << '\n';
    }
  }

  void clear() {
    if (empty()) throw ExcecaoEmpty("clear");
    while (head_->next != nullptr) {
      Celula<T>* celula = head_->next;
      head_->next = celula->next;
      delete celula->item;
      delete celula;
    }
    tail_ = head_;
    length_ = 0;
  }

 private:
  Rastro rastro_;
  std::size_t length_ = 0;
  Celula<T>* head_;
  Celula<T>* tail_;
};

}  // namespace sava::documents
