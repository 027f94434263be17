# How rooms, tests and tools are declared, each in one line.

# Apart from our other options, because the C programs of the tests and examples need it as well.
add_library(catenary_sanitizers INTERFACE)
if(CATENARY_SANITIZE)
  target_compile_options(catenary_sanitizers INTERFACE
    -fsanitize=${CATENARY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Instrumented code makes g++ 12 see uninitialized members within std::regex.
  target_compile_options(catenary_sanitizers INTERFACE -Wno-maybe-uninitialized)
  target_link_options(catenary_sanitizers INTERFACE -fsanitize=${CATENARY_SANITIZE})
endif()

add_library(catenary_options INTERFACE)
target_link_libraries(catenary_options INTERFACE catenary_sanitizers)
target_include_directories(catenary_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(catenary_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -fvisibility=hidden -ffp-contract=off)
if(CATENARY_WERROR)
  target_compile_options(catenary_options INTERFACE -Werror)
endif()

# catenary_keep_in_ccache(<name>): of a target with precompiled headers ccache keeps nothing otherwise.
function(catenary_keep_in_ccache name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# What most of our files include of the standard library is read once for all of them, instead of for a
# second and a half by each. A build without tests does not share it, and so shows that each file includes
# what it uses.
set(catenary_common_headers
  <algorithm> <array> <atomic> <chrono> <cstddef> <cstdint> <cstring> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)
if(CATENARY_TESTS)
  add_library(library_headers STATIC cmake/common_headers.cc)
  add_executable(program_headers cmake/common_headers.cc)
  foreach(owner library_headers program_headers)
    target_link_libraries(${owner} PRIVATE catenary_options)
    target_precompile_headers(${owner} PRIVATE ${catenary_common_headers})
    catenary_keep_in_ccache(${owner})
  endforeach()
endif()

# catenary_share_headers(<name>): for a library or a program that is compiled as catenary_options says.
function(catenary_share_headers name)
  if(NOT CATENARY_TESTS)
    return()
  endif()
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_precompile_headers(${name} REUSE_FROM program_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM library_headers)
  endif()
  catenary_keep_in_ccache(${name})
endfunction()

# catenary_room(<name> SOURCES a.cc ... [DEPENDS other_room ...] [OPTIMIZED_MORE])
# A room is a static library, cat_<name>, that sees only the rooms it depends on; compiled with -O3, but
# for what is built to be looked at, if it is to be optimized more.
function(catenary_room name)
  cmake_parse_arguments(ROOM "OPTIMIZED_MORE" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(cat_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(cat_${name} PUBLIC catenary_options ${ROOM_DEPENDS})
  if(NOT ROOM_OPTIMIZED_MORE OR CATENARY_SANITIZE)
    catenary_share_headers(cat_${name})
    return()
  endif()
  target_compile_options(cat_${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  if(CATENARY_TESTS)  # with options of its own it needs its own
    target_precompile_headers(cat_${name} PRIVATE ${catenary_common_headers})
    catenary_keep_in_ccache(cat_${name})
  endif()
endfunction()

# Tests are built more often than what they run in themselves takes long: so they are not optimized, and
# what most of them include is read once for all.
# catenary_test_program(<name>): how a program of the tests is built.
function(catenary_test_program name)
  catenary_test_options(${name})
  target_precompile_headers(${name} REUSE_FROM test_headers)
endfunction()
function(catenary_test_options name)
  target_compile_options(${name} PRIVATE -O0)
  catenary_keep_in_ccache(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# catenary_not_for_tsan(<target> ...): programs in which ThreadSanitizer sees nothing that other tests do not
# show it. `./dev tsan` runs none of them, and so they are not built there either, but by name; a bare ctest
# there does not find them.
function(catenary_not_for_tsan)
  if(CATENARY_SANITIZE MATCHES "thread")
    set_target_properties(${ARGV} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()

# catenary_one_thread(<test>): so it is with a test whose program, of the same name, has one thread.
function(catenary_one_thread name)
  set_property(TEST ${name} APPEND PROPERTY LABELS one_thread)
  catenary_not_for_tsan(${name})
endfunction()

# catenary_test(<name> SOURCES a_test.cc ... [DEPENDS cat_x ...] [LABEL unit] [TIMEOUT 180] [OPTIMIZED])
# A GoogleTest program that ctest runs as one test; optimized where it computes much by itself, or is
# about code that stands in headers.
function(catenary_test name)
  cmake_parse_arguments(TEST "OPTIMIZED" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 180)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE catenary_options ${TEST_DEPENDS} GTest::gtest_main)
  if(TEST_OPTIMIZED)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    catenary_share_headers(${name})
  else()
    catenary_test_program(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT})
  if(TEST_LABEL MATCHES "^(process|libfabric|mpi|stress|one_thread)$")
    catenary_not_for_tsan(${name})
  endif()
endfunction()
