// SPDX-License-Identifier: MIT
#include "base/text_form.hpp"
#include "base/error.hpp"

namespace xio {

text_form::text_form(const char* expression) {
  if (regcomp(&form_, expression, REG_EXTENDED) != 0)
    fail(XIO_ERR_INTERNAL, "the expression {} is wrong; report it as an error of XIO", expression);
}

text_form::~text_form() { regfree(&form_); }

std::vector<std::string> text_form::parts_of(const std::string& text) const {
  std::vector<regmatch_t> at(form_.re_nsub + 1);
  // The leftmost longest match is the whole text if any match is. A text that a zero byte ends early is not matched
  // whole.
  if (regexec(&form_, text.c_str(), at.size(), at.data(), 0) != 0) return {};
  if (at[0].rm_so != 0 || static_cast<std::size_t>(at[0].rm_eo) != text.size()) return {};
  std::vector<std::string> parts;
  for (const regmatch_t& one : at)
    parts.push_back(one.rm_so < 0 ? ""
                                  : text.substr(static_cast<std::size_t>(one.rm_so),
                                                static_cast<std::size_t>(one.rm_eo - one.rm_so)));
  return parts;
}

}  // namespace xio
