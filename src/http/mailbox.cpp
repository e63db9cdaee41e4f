#include "http/mailbox.hpp"

namespace latchkey::http {
namespace {

thread_local const Mailbox* mailbox_of_thread = nullptr;

}  // namespace

void Mailbox::adopt_thread() { mailbox_of_thread = this; }

void Mailbox::deliver(Ticket ticket, Response response) {
  Letter letter{ticket, std::move(response)};
  if (mailbox_of_thread == this && owner_ != nullptr && owner_->accept_now(letter)) return;
  const std::lock_guard lock(mutex_);
  if (owner_ == nullptr) return;
  letters_.push_back(std::move(letter));
  if (letters_.size() == 1) owner_->wake();
}

void Mailbox::drain(std::vector<Letter>& letters) {
  const std::lock_guard lock(mutex_);
  letters_.swap(letters);
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  owner_ = nullptr;
  letters_.clear();
}

}  // namespace latchkey::http
