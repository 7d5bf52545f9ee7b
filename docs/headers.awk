# SPDX-License-Identifier: MIT
# What Doxygen reads of a header: the house's plain comments as documentation. The first comment is the file's, one that
# stands before a declaration is that declaration's, one behind a member is the member's.
function escaped(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/</, "\\<", text)
  gsub(/#/, "\\#", text)
  gsub(/@/, "\\@", text)
  return text
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
# Forms of a call for a wave or workgroup stand behind the form for one thread, whose documentation is theirs.
/^XIO_DEVICE .* xio_[a-z0-9_]*_(wave|wg)\(/ && last ~ /}$/ {
  print "/// The same, called by all threads of the " (/_wave\(/ ? "wave" : "workgroup") "."
}
{ last = $0; print }
