# The few functions every room's CMakeLists.txt is written with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Contraction would let the compiler pick which products become fused: results
# would then depend on the compiler and not on the code.
add_library(ponder_flags INTERFACE)
target_compile_options(ponder_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow
                                              -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlapping copies inside std::string concatenation that cannot happen (its bug 105651).
  target_compile_options(ponder_flags INTERFACE -Wno-restrict)
endif()
target_include_directories(ponder_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
if(PONDER_WERROR)
  target_compile_options(ponder_flags INTERFACE -Werror)
endif()
if(PONDER_SANITIZE)
  target_compile_options(ponder_flags INTERFACE -fsanitize=${PONDER_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(ponder_flags INTERFACE -fsanitize=${PONDER_SANITIZE})
endif()
if(PONDER_BUILD_FUZZERS)
  # Coverage of the libraries, not only of the fuzz target itself, is what guides the search.
  target_compile_options(ponder_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# ponder_room(name SOURCES a.cpp b.cpp DEPS base fmt::fmt): one room of src/ as a static library.
function(ponder_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(ponder_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(ponder_${name} PUBLIC ponder_flags ${ARG_DEPS})
endfunction()

# ponder_test(name SOURCES a_test.cpp DEPS ponder_text SHARDS 4): one GoogleTest program; ctest runs it whole, or its test
# cases dealt out to several entries name_1, name_2, ..., so that a long one takes all cores and keeps to its time.
function(ponder_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ponder_test_support ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE PONDER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    add_test(NAME ${name}_${shard} COMMAND ${name} --gtest_brief=1)
    math(EXPR index "${shard} - 1")
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 1500 ENVIRONMENT
                         "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# ponder_fuzzer(name SOURCE x.cpp DEPS ponder_formats CORPUS dir SECONDS 10): a libFuzzer program and a bounded run of it.
function(ponder_fuzzer name)
  cmake_parse_arguments(ARG "" "SOURCE;CORPUS" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCE})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ponder_flags ${ARG_DEPS})
  add_test(NAME ${name} COMMAND "${PROJECT_SOURCE_DIR}/scripts/run-fuzzer" $<TARGET_FILE:${name}> ${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS fuzz)
endfunction()
