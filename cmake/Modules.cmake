# latchkey_unite(TARGET files): so many files are compiled as one, headers and their templates once for all of them.
function(latchkey_unite name files)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${LATCHKEY_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# latchkey_module(NAME dep…): the folder's *.cpp (but main.cpp) as a static library latchkey_NAME, its *_test.cpp as the test NAME_test.
function(latchkey_module name)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  add_library(latchkey_${name} STATIC ${sources})
  target_include_directories(latchkey_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(latchkey_${name} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:latchkey_options>)
  target_precompile_headers(latchkey_${name} REUSE_FROM latchkey_pch)
  latchkey_unite(latchkey_${name} 16)
  if(LATCHKEY_TESTS AND tests)
    latchkey_test(${name}_test SOURCES ${tests} LIBS latchkey_${name} latchkey_test_support)
  endif()
endfunction()

# latchkey_test(NAME SOURCES … LIBS … [LABELS …] [TIMEOUT s] [COST s]): one GoogleTest program, one ctest entry.
# Label "concurrent" also runs it under ThreadSanitizer. COST is about how long it takes at most, by a sanitizer too: the longest are started first, so
# that the others run beside them.
function(latchkey_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} latchkey_options GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM latchkey_test_pch)
  # What they test is built apart, as shipped. With sanitizers, too, optimising the tests takes longer than it saves.
  target_compile_options(${name} PRIVATE -O0)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  if("concurrent" IN_LIST arg_LABELS)
    add_dependencies(concurrent_tests ${name})
  endif()
endfunction()

# What is built for ThreadSanitizer.
add_custom_target(concurrent_tests)

# latchkey_concurrent(NAME): this module's tests have threads.
function(latchkey_concurrent name)
  if(TARGET ${name})
    set_tests_properties(${name} PROPERTIES LABELS concurrent)
    add_dependencies(concurrent_tests ${name})
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
