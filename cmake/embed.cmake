# g3_embed(FILE NAME OUT): a C file that defines `const char NAME[]` with the text of FILE.
function(g3_embed file name out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n  \"" text "${text}")
  string(CONCAT source "/* Made by cmake/embed.cmake. */\nextern const char ${name}[];\n"
    "const char ${name}[] =\n  \"${text}\";\n")
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "${source}")
endfunction()
