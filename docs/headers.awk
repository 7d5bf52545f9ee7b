# SPDX-License-Identifier: MIT
# What Doxygen reads of a header: the house's plain comments as documentation. The first comment is the file's, one that
# stands before a declaration is that declaration's, one behind a member is the member's. Of device headers: the calls
# that XIO_OP, XIO_FORMS and XIO_GROUP_FORMS declare together stand there one by one, and each call has those of its
# parameters documented that the file's comment lists under "Parameters."
function escaped(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/</, "\\<", text)
  gsub(/#/, "\\#", text)
  gsub(/@/, "\\@", text)
  return text
}
# A line of that list: "//   name, name  what it means", or more of what the last one means.
function listed(line,   text, n, i) {
  if (match(line, /^\/\/   [a-z_]+(, [a-z_]+)*  +/)) {
    text = substr(line, 6, RLENGTH - 5)
    sub(/ +$/, "", text)
    n_names = split(text, names, /, /)
    text = substr(line, RLENGTH + 1)
  } else {
    text = line
    sub(/^\/\/ */, " ", text)
  }
  for (i = 1; i <= n_names; ++i) meaning[names[i]] = meaning[names[i]] text
}
# Declares a call with its parameters' documentation; `list` is what stands between the parentheses.
function call(text, list,   n, i, each) {
  n = split(list, each, /, */)
  for (i = 1; i <= n; ++i) {
    sub(/ *=.*/, "", each[i])
    sub(/.*[ *&]/, "", each[i])
    if (each[i] in meaning) print "/// \\param " each[i] " " escaped(meaning[each[i]])
  }
  if (head != "") print head
  print text "(" list ");"
}
# The calls of one declaration. The first has the comment, the others say whose form they are.
function declare(text,   list, each, i, first, scope, returns) {
  list = text
  sub(/\)+;$/, "", list)
  sub(/.*\(/, "", list)
  sub(/\(.*/, "", text)
  if (text !~ /^XIO_(OP|FORMS|GROUP_FORMS)$/) {
    call(text, list)
    return
  }
  split(whole, each, /[(,] */)
  i = text == "XIO_OP" ? 2 : 3
  for (first = each[i]; each[i] ~ /^xio_/; ++i) {
    returns = text != "XIO_OP" ? each[2] : each[i] ~ /_nbi/ ? "xio_req_t" : "xio_status_t"
    scope = each[i] ~ /_wave$/ ? "all threads of a wave" : each[i] ~ /_wg$/ ? "all threads of a workgroup" : "one thread"
    if (each[i] != first) print "\n/// " first " for " scope (each[i] ~ /_nbi/ ? ", without waiting." : ".")
    call("XIO_DEVICE " returns " " each[i], list)
  }
}
FNR == 1 { top = 1; next }  # the licence
top == 1 && /^\/\*/ {
  $0 = escaped($0)
  sub(/^\/\*/, "/** \\file\n")
  c = $0 !~ /\*\//
  top = 0
  print
  next
}
top == 1 && /^\/\// { print "/// \\file"; top = 2 }
top == 2 && !/^\/\// { top = 0; print "" }
top == 2 && /^\/\/ Parameters\.$/ { list_on = 1; next }
list_on && !/^\/\/ / { list_on = 0; next }
list_on { listed($0); next }
/^ *\/\/ ---/ { print ""; next }  # a headline between parts
top == 2 || /^ *\/\/ / || /^ *\/\/$/ { sub(/\/\//, "///"); print escaped($0); next }
# C comments: before a declaration, or behind a member.
!c && /\/\*/ {
  mark = $0 ~ /^ *\/\*/ ? "/**" : "/**<"
  $0 = escaped($0)
  sub(/\/\*/, mark)
  c = 1
  if ($0 ~ /\*\//) c = 0
  print
  next
}
c {
  if ($0 ~ /\*\//) c = 0
  print escaped($0)
  next
}
/^template / { head = $0; next }
/^XIO_(OP|FORMS|GROUP_FORMS|DEVICE|HOST_DEVICE)[( ]/ { whole = "" }
/^XIO_(OP|FORMS|GROUP_FORMS|DEVICE|HOST_DEVICE)[( ]/, /;$/ {
  sub(/^ +/, whole ~ /\($/ || whole == "" ? "" : " ")
  whole = whole $0
  if (/;$/) {
    # A form that stands right behind another.
    if (last ~ /;$/ && whole ~ /_wg\(/) print "/// The same for all threads of a workgroup."
    declare(whole)
    head = ""
    last = whole
  }
  next
}
{ last = $0; print }
