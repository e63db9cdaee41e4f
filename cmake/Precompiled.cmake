# Two precompiled headers that all targets share: one for the libraries, one for the tests. Parsing Asio's coroutines takes most of the
# time that a file needs without them.
add_library(latchkey_asio STATIC ${CMAKE_CURRENT_LIST_DIR}/pch/asio.cpp)
target_link_libraries(latchkey_asio PUBLIC Boost::headers Threads::Threads PRIVATE $<BUILD_INTERFACE:latchkey_options>)

set(pch ${PROJECT_SOURCE_DIR}/cmake/pch)
add_library(latchkey_pch OBJECT ${pch}/empty.cpp)
target_link_libraries(latchkey_pch PRIVATE Boost::headers fmt::fmt Threads::Threads latchkey_options)
target_precompile_headers(latchkey_pch PRIVATE ${pch}/common.hpp)
if(LATCHKEY_TESTS)
  # An object library, and so -fPIC: test programs and their fixtures are, too (latchkey_test_options).
  add_library(latchkey_test_pch OBJECT ${pch}/empty.cpp)
  target_link_libraries(latchkey_test_pch PRIVATE latchkey_asio fmt::fmt latchkey_options GTest::gtest PostgreSQL::PostgreSQL)
  target_compile_options(latchkey_test_pch PRIVATE -O0)
  target_include_directories(latchkey_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_precompile_headers(latchkey_test_pch PRIVATE ${pch}/tests.hpp)
endif()
