# The compiler's settings, the same for every target of ours.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "Latchkey builds with clang 19: g++ 12 miscompiles coroutines")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers are only cacheable with these sloppiness settings and without time stamps.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(latchkey_options INTERFACE)
target_compile_options(latchkey_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers -Wno-missing-designated-field-initializers
  -Werror=return-type -Werror=unused-result -Werror=switch -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>)
target_compile_definitions(latchkey_options INTERFACE BOOST_ASIO_SEPARATE_COMPILATION)
target_link_options(latchkey_options INTERFACE -fuse-ld=lld-19)
add_compile_options($<$<CONFIG:Debug>:-O1> $<$<CONFIG:Debug>:-gline-tables-only>)
if(LATCHKEY_SANITIZE)
  add_compile_options(-fsanitize=${LATCHKEY_SANITIZE} -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${LATCHKEY_SANITIZE})
endif()
