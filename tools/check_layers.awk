# The rules of tools/check_layers.sh. Reads tools/layers.txt, cmake/folders.cmake and then the
# sources. Prints FILE:LINE: what is wrong.

function complain_at(place, what) {
  print place ": " what
  bad = 1
}

function complain(what) {
  complain_at(FILENAME ":" FNR, what)
}

# FOLDER : folders that it may include : foreign headers (by how they begin) that are its own
function read_row(   i, n, name) {
  if (split($0, column, ":") != 3) {
    complain("wanted three columns with : between")
    return
  }
  gsub(/[ \t]/, "", column[1])
  n = split(column[2], name, " ")
  for (i = 1; i <= n; i++) {
    if (!(name[i] in known))
      complain(column[1] " may not include " name[i] ", which stands no higher in the table")
    may[column[1], name[i]] = 1
  }
  known[column[1]] = 1
  n = split(column[3], name, " ")
  for (i = 1; i <= n; i++)
    owner[name[i], column[1]] = foreign[name[i]] = 1
}

# Of a call g3_folder(NAME USES a b LIBS c ...), all on one text: the words after USES.
function read_call(text,   i, n, word, uses) {
  sub(/.*g3_folder\(/, "", text)
  sub(/\).*/, "", text)
  n = split(text, word, " ")
  linked[word[1]] = FILENAME ":" FNR
  for (i = 2; i <= n; i++) {
    if (word[i] ~ /^[A-Z]+$/) uses = word[i] == "USES"
    else if (uses) use[word[1], word[i]] = 1
  }
}

function compare_links(   f, g, place) {
  for (f in linked) {
    place = linked[f]
    if (!(f in known)) complain_at(place, "folder " f " is no row of tools/layers.txt")
    for (g in known) {
      if ((f, g) in use && !((f, g) in may))
        complain_at(place, f " uses " g ", which tools/layers.txt does not allow")
      if (!((f, g) in use) && (f, g) in may && g in linked)
        complain_at(place, f " does not use " g ", which tools/layers.txt lists")
    }
  }
}

# src/main.c may include every folder and no foreign header of theirs.
function check_include(header,   part, me, to, f) {
  me = split(FILENAME, part, "/") > 2 ? part[2] : ""
  if (me != "" && !(me in known)) complain("folder " me " is no row of tools/layers.txt")
  split(header, part, "/")
  to = part[1]
  if (to in known) {
    if (me != "" && to != me && !((me, to) in may)) complain(me " may not include " header)
    return
  }
  if (quoted) {
    complain("\"" header "\" does not begin with a folder of src/")
    return
  }
  for (f in foreign)
    if (index(header, f) == 1 && !((f, me) in owner))
      complain("<" header "> belongs to another folder (tools/layers.txt: " f ")")
}

FNR == 1 { file++ }
file == 1 {
  if ($0 !~ /^[ \t]*(#|$)/) read_row()
  next
}
file == 2 {
  if ($0 ~ /^g3_folder\(/) call = ""
  if ($0 ~ /^g3_folder\(/ || call != "") {
    call = call " " $0
    if (call ~ /\)/) {
      read_call(call)
      call = ""
    }
  }
  next
}
file == 3 && !compared++ { compare_links() }
match($0, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*/) {
  header = substr($0, RSTART, RLENGTH)
  quoted = header ~ /"/
  sub(/^[^<"]*[<"]/, "", header)
  check_include(header)
}
END { exit bad }
