// SPDX-License-Identifier: MIT

#include <cstdio>

#include "base/error.hpp"
#include "ctx/metrics.hpp"
#include "ctx/seen_page.hpp"
#include "tools/xio-info/job_report.hpp"
#include "xio/xio.h"

namespace xio::info {
namespace {

constexpr auto k_poll_interval = std::chrono::milliseconds(5);
constexpr auto k_most = std::chrono::milliseconds(2000);

std::string why_silent(const polled_page& l) {
  const char state = stat_of(l.pid).first;
  if (state == '\0' || state == 'Z' || state == 'X') return fmt::format("process {} has ended meanwhile", l.pid);
  if (state == 'T' || state == 't')
    return fmt::format("process {} is stopped by a signal or a debugger, and tells no counts before it goes on", l.pid);
  return fmt::format("process {} has not replied with its counts within {} ms; ask again", l.pid, k_most.count());
}

}  // namespace

std::string metrics_report(const std::string& which) {
  std::vector<polled_page> pages = open_pages("--metrics", which);
  std::vector<std::string> remarks, texts;
  std::erase_if(pages, [&](polled_page& l) {
    if (!l.read()) return true;
    if (std::string why = l.wrong(); !why.empty()) return remarks.push_back(std::move(why)), true;
    l.ask();
    return false;
  });
  for (const auto until = std::chrono::steady_clock::now() + k_most; !pages.empty();) {
    std::erase_if(pages, [&](const polled_page& l) {
      std::string text = l.asked ? l.reply() : "";
      if (text.empty()) return false;
      texts.push_back(std::move(text));
      return true;
    });
    const bool over = std::chrono::steady_clock::now() > until;
    if (over || std::ranges::none_of(pages, [](const polled_page& l) { return l.asked; })) break;
    std::this_thread::sleep_for(k_poll_interval);
  }
  for (const polled_page& l : pages) remarks.push_back(why_silent(l));
  if (texts.empty()) fail(XIO_ERR_STATE, "{}", remarks.empty() ? why_none(which) : remarks.front());
  for (const std::string& r : remarks) std::fprintf(stderr, "xio-info: %s\n", r.c_str());
  return merge_metrics(texts);
}

}  // namespace xio::info
