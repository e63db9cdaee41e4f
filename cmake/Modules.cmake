# latchkey_unite(TARGET files): so many files are compiled as one, headers and their templates once for all of them.
function(latchkey_unite name files)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${LATCHKEY_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# latchkey_module(NAME dep… [FOLDERS folder…]): the folder's *.cpp (but main.cpp), and those of the subfolders in FOLDERS, as a static
# library latchkey_NAME, its *_test.cpp as the test NAME_test.
function(latchkey_module name)
  cmake_parse_arguments(arg "" "" "FOLDERS" ${ARGN})
  set(patterns ${arg_FOLDERS})
  list(TRANSFORM patterns APPEND "/*.cpp")
  file(GLOB sources CONFIGURE_DEPENDS *.cpp ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  add_library(latchkey_${name} STATIC ${sources})
  target_include_directories(latchkey_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(latchkey_${name} PUBLIC ${arg_UNPARSED_ARGUMENTS} PRIVATE $<BUILD_INTERFACE:latchkey_options>)
  target_precompile_headers(latchkey_${name} REUSE_FROM latchkey_pch)
  latchkey_unite(latchkey_${name} 16)
  if(LATCHKEY_TESTS AND tests)
    latchkey_test(${name}_test SOURCES ${tests} LIBS latchkey_${name} latchkey_test_support LABELS sanitize)
  endif()
endfunction()

# The test programs, by the way they are run: `tests` in release, `sanitize_tests` by CI under ASan + UBSan, and `concurrent_tests` under
# TSan.
add_custom_target(tests)
add_custom_target(sanitize_tests)
add_custom_target(concurrent_tests)

# latchkey_label_test(NAME label…): ctest finds the program by these labels, and the targets above build it.
function(latchkey_label_test name)
  set_property(TEST ${name} APPEND PROPERTY LABELS ${ARGN})
  foreach(label ${ARGN})
    if(TARGET ${label}_tests)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
endfunction()

# Tests are not optimised: compiling them would take longer than their run saves. What they test is built apart, as shipped.
# They share the precompiled header of PCH, for which libraries and programs must have the same -fPIC.
function(latchkey_test_options name pch)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC -O0)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  # ccache preprocesses the precompiled header's text as well, and so needs its include folders.
  target_include_directories(${name} SYSTEM PRIVATE ${PostgreSQL_INCLUDE_DIRS})
  target_precompile_headers(${name} REUSE_FROM ${pch})
endfunction()

# latchkey_test(NAME SOURCES … LIBS … [LABELS …] [TIMEOUT s] [COST s] [UNITY files]): one GoogleTest program, one ctest entry.
# Label "concurrent" also runs it under ThreadSanitizer, label "sanitize" by CI under ASan + UBSan. ctest starts the programs with the
# highest COST, in seconds, first, and the others run beside them. UNITY compiles so many files as one.
function(latchkey_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST;UNITY;PCH" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT arg_PCH)
    set(arg_PCH latchkey_test_pch)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} latchkey_options GTest::gtest GTest::gmock GTest::gtest_main)
  latchkey_test_options(${name} ${arg_PCH})
  if(arg_UNITY)
    latchkey_unite(${name} ${arg_UNITY})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  add_dependencies(tests ${name})
  latchkey_label_test(${name} ${arg_LABELS})
endfunction()

# latchkey_binary_test(NAME …): as latchkey_test, for a program that starts the real binary.
function(latchkey_binary_test name)
  latchkey_test(${name} ${ARGN})
  target_compile_definitions(${name} PRIVATE LATCHKEY_BINARY="$<TARGET_FILE:latchkey_cli>")
  add_dependencies(${name} latchkey_cli)
endfunction()

# latchkey_fixtures(NAME SOURCES … LIBS …): code that several test programs share, compiled once.
function(latchkey_fixtures name)
  cmake_parse_arguments(arg "" "UNITY" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LIBS} PostgreSQL::PostgreSQL GTest::gtest PRIVATE latchkey_options)
  latchkey_test_options(${name} latchkey_test_pch)
  target_compile_definitions(${name} PUBLIC LATCHKEY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(arg_UNITY)
    latchkey_unite(${name} ${arg_UNITY})
  endif()
endfunction()

# latchkey_concurrent(NAME): this module's tests have threads.
function(latchkey_concurrent name)
  if(TARGET ${name})
    latchkey_label_test(${name} concurrent)
  endif()
endfunction()

# latchkey_embed_sql(NAMESPACE name…): each name.sql of the folder becomes the string constant NAMESPACE::name of name.sql.hpp.
function(latchkey_embed_sql namespace)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(name ${ARGN})
    file(READ ${name}.sql text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${name}.sql)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${folder}/${name}.sql.hpp @ONLY
      CONTENT "#pragma once\nnamespace ${namespace} { inline constexpr char ${name}[] = R\"sql(@text@)sql\"; }\n")
  endforeach()
endfunction()
