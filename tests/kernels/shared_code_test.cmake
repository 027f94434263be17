# Fails if an object of the kernels that is compiled for a newer processor defines a function that
# the linker may keep for other files too (weak): it would crash on older processors.
# Input: NM, OBJECTS separated by commas.
string(REPLACE "," ";" objects "${OBJECTS}")
list(FILTER objects INCLUDE REGEX "reduce_avx")
if(NOT objects)
  message(FATAL_ERROR "no object of an instruction set among ${OBJECTS}")
endif()
foreach(object IN LISTS objects)
  execute_process(COMMAND ${NM} --defined-only --demangle ${object}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES " [DR] catenary::kernels::k")
    message(FATAL_ERROR "${object} defines no table: ${symbols}")
  endif()
  if(symbols MATCHES "\n[0-9a-f]+ (W [^\n]*)")
    message(FATAL_ERROR "${object} shares ${CMAKE_MATCH_1}")
  endif()
endforeach()
