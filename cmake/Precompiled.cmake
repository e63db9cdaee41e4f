# Two precompiled headers that all targets share: one for the libraries, one for the tests. Asio's coroutines alone are most
# of what a file would have to parse.
add_library(latchkey_asio STATIC ${CMAKE_CURRENT_LIST_DIR}/pch/asio.cpp)
target_link_libraries(latchkey_asio PUBLIC Boost::headers Threads::Threads PRIVATE $<BUILD_INTERFACE:latchkey_options>)

# A precompiled header fits only targets of its own kind: libraries are -fPIC, programs -fPIE.
set(pch ${PROJECT_SOURCE_DIR}/cmake/pch)
add_library(latchkey_pch OBJECT ${pch}/empty.cpp)
target_link_libraries(latchkey_pch PRIVATE Boost::headers fmt::fmt Threads::Threads latchkey_options)
target_precompile_headers(latchkey_pch PRIVATE ${pch}/common.hpp)
if(LATCHKEY_TESTS)
  add_executable(latchkey_test_pch ${pch}/empty.cpp)
  target_link_libraries(latchkey_test_pch PRIVATE latchkey_asio fmt::fmt latchkey_options GTest::gtest PostgreSQL::PostgreSQL)
  target_compile_options(latchkey_test_pch PRIVATE -O0)
  target_include_directories(latchkey_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_precompile_headers(latchkey_test_pch PRIVATE ${pch}/tests.hpp)
endif()
