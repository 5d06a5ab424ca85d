// ListaEncadeada<T>: the linked list of document S1 (2.1.2), with a head cell before the first
// element. Positions count from 1. Costs as in the document's 3.1.2: what goes by position takes
// O(position), pop_back, print, clear and the destructor O(n), find O(n) at worst, the rest O(1).
//
//   sava::documents::ListaEncadeada<std::string> lista;
//   lista.push_back("b");
//   lista.insert_at(1, "a");     // before "b"; position size() + 1 is behind the last element
//   lista.find("b");             // 2
//
// An empty list throws ExcecaoEmpty whatever it is asked but size, empty and the two pushes, and a
// position that does not exist ExcecaoInvalidPosition. T can be copied; print needs `<<` for it,
// find `==`. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <utility>

#include "sava/documents/celula.h"
#include "sava/documents/excecoes.h"

namespace sava::documents {

template <typename T, typename Rastro = SemRastro>
class ListaEncadeada {
 public:
  explicit ListaEncadeada(Rastro rastro = Rastro())
      : rastro_(std::move(rastro)), head_(new Celula<T>), tail_(head_) {
    rastro_.EscreveCelula(head_);
  }
  ~ListaEncadeada() {
    if (!empty()) clear();
    delete head_;
  }
  ListaEncadeada(const ListaEncadeada&) = delete;
  ListaEncadeada& operator=(const ListaEncadeada&) = delete;

  std::size_t size() const { return length_; }
  bool empty() const { return length_ == 0; }

  // Good until the element is removed or replaced.
  const T& get_item(std::int64_t posicao) const {
    Confere("get_item", posicao, Ultima());
    const T* item = Posiciona(posicao)->item;
    rastro_.LeItem(item);
    return *item;
  }

  void set_item(std::int64_t posicao, const T& item) {
    Confere("set_item", posicao, Ultima());
    Celula<T>* celula = Posiciona(posicao);
    *celula->item = item;
    rastro_.EscreveItem(celula->item);
  }

  void push_front(const T& item) { InsereDepois(head_, item); }

  void push_back(const T& item) { InsereDepois(tail_, item); }

  void insert_at(std::int64_t posicao, const T& item) {
    Confere("insert_at", posicao, Ultima() + 1);
    InsereDepois(Antes(posicao), item);
  }

  T pop_front() {
    if (empty()) throw ExcecaoEmpty("pop_front");
    return RetiraDepois(head_);
  }

  T pop_back() {
    if (empty()) throw ExcecaoEmpty("pop_back");
    return RetiraDepois(Antes(Ultima()));
  }

  T remove_at(std::int64_t posicao) {
    Confere("remove_at", posicao, Ultima());
    return RetiraDepois(Antes(posicao));
  }

  // The position of the first element that is equal, 0 when there is none.
  std::int64_t find(const T& item) const {
    if (empty()) throw ExcecaoEmpty("find");
    std::int64_t posicao = 1;
    for (const Celula<T>* celula = head_->next; celula != nullptr; celula = celula->next) {
      rastro_.LeCelula(celula);
      rastro_.LeItem(celula->item);
      if (*celula->item == item) return posicao;
      ++posicao;
    }
    return 0;
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
  std::int64_t Ultima() const { return static_cast<std::int64_t>(length_); }

  void Confere(const char* operacao, std::int64_t posicao, std::int64_t ultima) const {
    if (empty()) throw ExcecaoEmpty(operacao);
    if (posicao < 1 || posicao > ultima) {
      throw ExcecaoInvalidPosition(operacao, posicao, 1, ultima);
    }
  }

  // The cell at a position that exists.
  Celula<T>* Posiciona(std::int64_t posicao) const {
    Celula<T>* celula = head_->next;
    rastro_.LeCelula(celula);
    for (std::int64_t i = 1; i < posicao; ++i) {
      celula = celula->next;
      rastro_.LeCelula(celula);
    }
    return celula;
  }

  // The cell before a position, which may be the head cell.
  Celula<T>* Antes(std::int64_t posicao) const {
    Celula<T>* celula = head_;
    rastro_.LeCelula(celula);
    for (std::int64_t i = 1; i < posicao; ++i) {
      celula = celula->next;
      rastro_.LeCelula(celula);
    }
    return celula;
  }

  void InsereDepois(Celula<T>* antes, const T& item) {
    Celula<T>* nova = NovaCelula<T>(item, antes->next);
    antes->next = nova;
    if (antes == tail_) tail_ = nova;
    rastro_.EscreveCelula(nova);
    rastro_.EscreveItem(nova->item);
    ++length_;
  }

  T RetiraDepois(Celula<T>* antes) {
    Celula<T>* celula = antes->next;
    rastro_.LeCelula(celula);
    rastro_.LeItem(celula->item);
    antes->next = celula->next;
    if (celula == tail_) tail_ = antes;
    --length_;
    return LiberaCelula(celula);
  }

  Rastro rastro_;
  std::size_t length_ = 0;
  Celula<T>* head_;
  Celula<T>* tail_;
};

}  // namespace sava::documents
