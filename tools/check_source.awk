# The rules that tools/check_source.sh holds source files to, line by line. Reads any number of
# files; their names, relative to the root of the tree, say which rules they are under. Prints
# FILE:LINE: what is wrong.
#
# Variables: allocators = names of the files that may call malloc and its kin, each between spaces.

function complain(line, what) {
  print name ":" line ": " what
  bad = 1
}

function complain_of_size(line, what, is, most, unit) {
  if (is > most) complain(line, what " has " is " " unit "; wanted " most " at most")
}

# The line without comments and without what stands between quotes. Sets `commented` when there
# was a comment; `inside` holds over lines.
function strip(s,   out, c) {
  out = ""
  commented = inside
  while (s != "") {
    if (inside) {
      if (!(c = index(s, "*/"))) return out
      s = substr(s, c + 2)
      inside = 0
      continue
    }
    if (!match(s, /\/[*\/]|["']/)) return out s
    out = out substr(s, 1, RSTART - 1)
    c = substr(s, RSTART, 2)
    if (c == "//" || c == "/*") {
      commented = 1
      if (c == "//") return out
      inside = 1
      s = substr(s, RSTART + 2)
      continue
    }
    c = substr(c, 1, 1)
    s = substr(s, RSTART + 1)
    if (c == "\"") match(s, /^([^"\\]|\\.)*"/)
    else match(s, /^([^'\\]|\\.)*'/)
    if (RLENGTH < 0) return out
    s = substr(s, RLENGTH + 1)
    out = out c c
  }
  return out
}

function begin_file(   path) {
  name = FILENAME
  c_file = FILENAME ~ /\.(c|h|cu|cuh)$/
  own_c = c_file && FILENAME ~ /^src\//
  header = own_c && FILENAME ~ /\.h$/
  prose = FILENAME ~ /\.(md|txt|yaml|yml|json)$|(^|\/)LICENSE$/
  inside = depth = start = covered = guarded = macro = 0
  head = ""
  if (header) {
    path = toupper(substr(FILENAME, 5))
    gsub(/[^A-Z0-9]/, "_", path)
    guard = "G3_" path
  }
}

function end_file() {
  if (header && !guarded) complain(1, "wanted the include guard " guard)
  if (!prose) complain_of_size(lines, "the file", lines, 600, "lines")
}

function plain_rules(s,   width) {
  if (s ~ /\t/) complain(FNR, "a tab")
  if (s ~ /[ \t\r]$/) complain(FNR, "a space at the end of the line")
  if (s ~ /(^|[^A-Za-z0-9_])(TOD[O]|FIXM[E]|XX[X])([^A-Za-z0-9_]|$)/)
    complain(FNR, "a note of unfinished work")
  if (s ~ /\/(work|root|home)\/|\.\.\/shared/) complain(FNR, "a path of one machine")
  width = s
  gsub(/[\200-\277]/, "", width) # the later bytes of a character
  if (!prose) complain_of_size(FNR, "the line", length(width), c_file ? 100 : 120, "columns")
}

# The first call in `code` of a function that `names` (alternatives) names, or "".
function call_of(code, names) {
  if (!match(" " code, "[^A-Za-z0-9_](" names ") *[(]")) return ""
  return substr(" " code, RSTART + 1, RLENGTH - 2)
}

function call_rules(code,   call) {
  call = call_of(code, "v?sprintf|strcpy|strcat|gets")
  if (call) complain(FNR, call " cannot see the end of its buffer")
  call = call_of(code, "atoi|atol|atof")
  if (call) complain(FNR, call " takes anything for a number")
  call = call_of(code, "malloc|calloc|realloc|aligned_alloc|posix_memalign")
  if (own_c && call && index(allocators, " " name " ") == 0)
    complain(FNR, call ", an allocation of its own; use g3_alloc_array or an arena")
}

# Whether what has just ended may stand without a comment: a type that one line says whole, the
# announcement of a type, an assertion.
function speaks_for_itself(text) {
  if (text ~ /^ *_Static_assert/) return 1
  if (text ~ /^ *(typedef|enum) /) return FNR == start
  return text ~ /^ *(struct|union) [A-Za-z0-9_]+;/
}

# A declaration, function or variable has ended on this line.
function end_declaration() {
  if (is_function) complain_of_size(start, "the function", FNR - start + 1, 80, "lines")
  if (header && !covered && !own_comment && !speaks_for_itself(head))
    complain(start, "a declaration without a comment that says what it is")
  start = is_function = 0
  head = ""
}

function declaration_rules(code,   opens, closes, rest) {
  if (macro || code ~ /^[ \t]*#/) {
    if (code ~ /^[ \t]*#/ && depth == 0) covered = 0
    macro = code ~ /\\$/
    return
  }
  if (depth == 0 && start == 0) {
    if (code ~ /^[ \t]*$/) {
      covered = commented ? 1 : 0
      return
    }
    start = FNR
    own_comment = 0
  }
  if (commented && start) own_comment = 1
  if (depth == 0) {
    rest = code
    sub(/[{].*/, "{", rest)
    head = head " " rest
    if (code ~ /[{]/) is_function = head ~ /\(/ && head !~ /=/ && head !~ /^ *typedef /
  }
  opens = gsub(/[{]/, "{", code)
  closes = gsub(/[}]/, "}", code)
  depth += opens - closes
  if (depth == 0 && code ~ /[;}][ \t]*$/) end_declaration()
}

FNR == 1 {
  if (NR > 1) end_file()
  begin_file()
}
{
  lines = FNR
  plain_rules($0)
}
c_file {
  stripped = strip($0)
  if (header && $0 == "#ifndef " guard) guarded = 1
  call_rules(stripped)
  declaration_rules(stripped)
}
END {
  if (NR > 0) end_file()
  exit bad
}
