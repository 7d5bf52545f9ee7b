// SPDX-License-Identifier: MIT
// The channel of a world whose members may die (XIO_SURVIVE): links of its own between the members of the current view,
// a star around the lowest of them, and the agreement on the next view. The channel that made the world is not used any
// more but to end it.
#pragma once
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/member_star.hpp"
#include "bootstrap/view.hpp"

namespace xio::bootstrap {

// The most that this process knows of another one.
enum class evidence { none, stopped, excluded, dead };

class members_channel final : public channel {
 public:
  // Collective over `first`: members tell each other where they listen.
  static std::unique_ptr<members_channel> open(std::unique_ptr<channel> first, const bootstrap_options& o,
                                               std::uint32_t incarnation);

  int rank() const override { return first_->rank(); }
  int size() const override { return first_->size(); }
  const char* name() const override { return first_->name(); }
  bool sealed() const override { return true; }
  std::string end_of(int rank) const override { return first_->end_of(rank); }
  void abort(int code) noexcept override { first_->abort(code); }
  std::uint64_t bytes_moved() const override { return moved_ + (star_ ? star_->bytes_moved() : 0); }
  std::shared_ptr<const world_keys> keys() override { return first_->keys(); }
  bool takes_part(int rank) const override { return view_.members().has(rank); }

  std::vector<std::byte> allgather(std::span<const std::byte> mine) override;
  cells all_to_all(const cells& mine) override;

  // Evidence against a rank; asked often.
  void watch(std::function<evidence(int)> find) { evidence_of_ = std::move(find); }

  std::uint64_t view() const { return view_.number(); }
  const pe_set& members() const { return view_.members(); }
  struct decision {
    pe_set gone, dead;  // since the view before; those of them that are proven to be dead
    common_state state;
    int messages = 0;         // of the agreement, that this rank sent and received
    bool is_complete = true;  // false: a member of the view is dead, too, and another one is to be decided
  };
  // Decides on the next view with all members that are not proven to be dead or out of reach. Throws XIO_ERR_TIMEOUT
  // naming those that do not call it, XIO_ERR_STATE where this rank may not go on.
  decision shrink(const call_report& mine);
  // Behind the last shrink of a call, whether it threw or not.
  void end_shrink();

 private:
  members_channel(std::unique_ptr<channel> first, const bootstrap_options& o, member_links::self me,
                  std::vector<member_place> places);
  template <class Exchange>
  auto exchange(Exchange&& body);
  void ensure_star();
  void serve_latecomer(int pe, const frame& f);
  void end_star();
  void fail_if_dead() const;

  struct effort;  // one agreement under way
  void gather_evidence(effort& e);
  void lead(effort& e);
  void follow(effort& e);
  void hear(effort& e, int pe, const frame& f);
  void send(effort& e, const view_agreement::sent& all);
  void say(effort& e, int pe, const view_message& m);
  [[noreturn]] void give_up(xio_status_t status, const std::string& sentence);
  [[noreturn]] void fail_without_quorum();
  [[noreturn]] void fail_late(bool leads);
  std::string text_of(const pe_set& some) const;

  std::unique_ptr<channel> first_;
  const std::uint64_t timeout_ms_;
  member_links links_;
  view_agreement view_;
  std::unique_ptr<star_channel> star_;
  std::optional<error> broken_;  // of this view's star
  std::function<evidence(int)> evidence_of_;
  std::uint64_t moved_ = 0;
};

}  // namespace xio::bootstrap
