// SPDX-License-Identifier: MIT
// Files and memory of a GPU: data wait in host memory between the file's calls and the GPU's copies. A command goes in
// pieces, so that one piece is copied while the next is read, and many commands share the pieces' places.
#include <errno.h>

#include <algorithm>
#include <deque>
#include <list>
#include <utility>

#include "base/payload.hpp"
#include "model/nvme/file_engine.hpp"

namespace xio::model::nvme {
namespace {

class staged_engine : public file_engine {
 public:
  staged_engine(std::unique_ptr<file_engine> rest, const payload_agent& payload, std::span<std::byte> staging)
      : rest_(std::move(rest)),
        payload_(payload),
        own_(staging.empty() ? k_staging_bytes / k_whole_page : 0),
        places_(std::min(k_staging_bytes / k_staged_piece, rest_->room() / 2)) {
    std::byte* at = staging.empty() ? own_.front().bytes : staging.data();
    for (place& p : places_) {
      p.memory = std::exchange(at, at + k_staged_piece);
      free_.push_back(&p);
    }
  }

  const char* name() const override { return rest_->name(); }
  std::size_t room() const override {
    const std::size_t taken = free_.size() + loads_.size();  // each free place may become one of its jobs
    return rest_->room() - std::min(rest_->room(), taken);
  }
  bool takes(const file_job& job) const override { return rest_->takes(job); }
  bool assist() override { return rest_->assist(); }

  void start(file_job& job) override {
    if (job.by != file_job::way::staged) return rest_->start(job);
    load& one = loads_.emplace_back();
    one.job = &job;
    for (const iovec& v : job.parts) one.left += v.iov_len;
    waiting_.push_back(&one);
  }

  void kick() override {
    mark_copies();
    end_copies();
    fill_places();
    mark_copies();
    rest_->kick();
  }

  void reap(std::vector<file_job*>& done) override {
    from_file_.clear();
    rest_->reap(from_file_);
    for (file_job* job : from_file_) {
      if (job >= &places_.front().job && job <= &places_.back().job)
        end_file_call(*reinterpret_cast<place*>(job));
      else
        done.push_back(job);
    }
    kick();
    loads_.remove_if([&](const load& l) {
      if (l.out != 0 || (l.left != 0 && l.job->error == 0)) return false;
      std::erase(waiting_, &l);
      if (l.job->what == file_job::kind::read) payload_.fence();
      l.job->by = file_job::way::cache;
      done.push_back(l.job);
      return true;
    });
  }

 private:
  // A command: what of it has no place yet.
  struct load {
    file_job* job = nullptr;
    std::uint64_t left = 0, begun = 0;
    std::size_t out = 0;               // pieces in places
    std::size_t part = 0, inside = 0;  // of the job's memory: where the next piece begins
  };
  struct place {
    file_job job;  // the first member: of the piece
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    load* of = nullptr;
    std::size_t part = 0, inside = 0;
  };
  struct batch {
    std::uint64_t mark;
    std::vector<place*> places;
  };
  struct alignas(k_whole_page) page {
    std::byte bytes[k_whole_page];
  };

  // Pieces end where the file's pages do, so that those in the middle may go past the page cache.
  void fill_places() {
    while (!waiting_.empty() && !free_.empty()) {
      load& l = *waiting_.front();
      if (l.job->error != 0 || l.left == 0) {
        waiting_.pop_front();
        continue;
      }
      place& p = *free_.back();
      free_.pop_back();
      const std::uint64_t at = l.job->offset + l.begun;
      p.bytes = std::min(l.left, k_staged_piece - at % k_whole_page);
      p.of = &l;
      p.part = l.part, p.inside = l.inside;
      p.job.what = l.job->what;
      p.job.durable = l.job->durable;
      p.job.offset = at;
      p.job.parts.assign(1, iovec{p.memory, p.bytes});
      p.job.part = 0;
      p.job.error = 0;
      l.begun += p.bytes, l.left -= p.bytes;
      ++l.out;
      for (std::uint64_t step = p.bytes; step != 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(step, l.job->parts[l.part].iov_len - l.inside);
        step -= n, l.inside += n;
        if (l.inside == l.job->parts[l.part].iov_len) ++l.part, l.inside = 0;
      }
      if (p.job.what == file_job::kind::read)
        rest_->start(p.job);
      else
        copy(p);
    }
  }

  void copy(place& p) {
    const auto begin = payload_.copy_later != nullptr ? payload_.copy_later : payload_.copy;
    std::size_t part = p.part, inside = p.inside;
    for (std::byte *at = p.memory, *end = at + p.bytes; at != end && !p.of->job->unmapped; ++part, inside = 0) {
      auto* const theirs = static_cast<std::byte*>(p.of->job->parts[part].iov_base) + inside;
      const std::size_t n =
          std::min<std::size_t>(p.of->job->parts[part].iov_len - inside, static_cast<std::size_t>(end - at));
      if (p.job.what == file_job::kind::read)
        begin(theirs, at, n);
      else
        begin(at, theirs, n);
      at += n;
    }
    fresh_.push_back(&p);
  }

  // One mark for all that were begun since the last.
  void mark_copies() {
    if (fresh_.empty()) return;
    if (payload_.mark == nullptr || batches_.size() + 1 == payload_agent::k_marks) {
      if (payload_.finish != nullptr) payload_.finish();
      batches_.push_back({0, std::move(fresh_)});
      all_arrived_ = batches_.size();
    } else {
      batches_.push_back({payload_.mark(), std::move(fresh_)});
    }
    fresh_.clear();
  }

  void end_copies() {
    while (!batches_.empty() && (all_arrived_ != 0 || payload_.reached(batches_.front().mark))) {
      all_arrived_ -= all_arrived_ != 0 ? 1 : 0;
      const batch arrived = std::move(batches_.front());
      batches_.pop_front();
      for (place* p : arrived.places) {
        if (p->job.what == file_job::kind::read || p->of->job->unmapped)
          give_back(*p);
        else
          rest_->start(p->job);
      }
    }
  }

  void end_file_call(place& p) {
    if (p.job.error != 0 && p.of->job->error == 0) p.of->job->error = p.job.error;
    if (p.of->job->what == file_job::kind::read && p.job.error == 0) {
      copy(p);
    } else {
      give_back(p);
    }
  }

  void give_back(place& p) {
    if (p.of->job->unmapped) p.of->job->error = EFAULT;
    --p.of->out;
    free_.push_back(&p);
  }

  std::unique_ptr<file_engine> rest_;
  const payload_agent& payload_;
  std::vector<page> own_;
  std::vector<place> places_;
  std::vector<place*> free_, fresh_;  // fresh_: with copies that have no mark yet
  std::list<load> loads_;
  std::deque<load*> waiting_;  // for places
  std::deque<batch> batches_;
  std::size_t all_arrived_ = 0;  // batches from the front that need not be asked for
  std::vector<file_job*> from_file_;
};

}  // namespace

std::unique_ptr<file_engine> make_staged_engine(std::unique_ptr<file_engine> rest, const payload_agent& payload,
                                                std::span<std::byte> staging) {
  return std::make_unique<staged_engine>(std::move(rest), payload, staging);
}

}  // namespace xio::model::nvme
