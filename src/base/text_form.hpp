// SPDX-License-Identifier: MIT
// The form of a whole text, as an extended regular expression of POSIX: names of devices and drives. It stands over
// libc's <regex.h>, for <regex> is compiled anew, for seconds, in each file that uses it.
#pragma once
#include <regex.h>

#include <string>
#include <vector>

namespace xio {

class text_form {
 public:
  explicit text_form(const char* expression);  // throws XIO_ERR_INTERNAL for one that is wrong
  ~text_form();
  text_form& operator=(text_form&&) = delete;

  // The text and then what each group holds, empty for a group that matched nothing; no strings if the text has another
  // form.
  std::vector<std::string> parts_of(const std::string& text) const;
  bool fits(const std::string& text) const { return !parts_of(text).empty(); }

 private:
  regex_t form_{};
};

}  // namespace xio
