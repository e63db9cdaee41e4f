# Libraries from Debian, and SQLite's amalgamation from a pinned npm package (see docs/adr).
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(absl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(PostgreSQL 15 REQUIRED)
if(LATCHKEY_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

set(sqlite_source ${PROJECT_SOURCE_DIR}/third_party/sqlite/node_modules/better-sqlite3/deps/sqlite3)
if(NOT EXISTS ${sqlite_source}/sqlite3.c)
  message(STATUS "Fetching the pinned SQLite amalgamation")
  execute_process(COMMAND npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/third_party/sqlite COMMAND_ERROR_IS_FATAL ANY)
endif()
add_library(latchkey_sqlite3 STATIC ${sqlite_source}/sqlite3.c)
target_include_directories(latchkey_sqlite3 SYSTEM PUBLIC $<BUILD_INTERFACE:${sqlite_source}>)
target_compile_definitions(latchkey_sqlite3 PRIVATE
  SQLITE_THREADSAFE=2 SQLITE_DQS=0 SQLITE_DEFAULT_MEMSTATUS=0 SQLITE_LIKE_DOESNT_MATCH_BLOBS SQLITE_OMIT_DEPRECATED
  SQLITE_OMIT_SHARED_CACHE SQLITE_OMIT_LOAD_EXTENSION SQLITE_USE_ALLOCA SQLITE_ENABLE_DBSTAT_VTAB
  SQLITE_ENABLE_FTS5 SQLITE_ENABLE_RTREE SQLITE_ENABLE_MATH_FUNCTIONS)  # what users' own migrations may ask for
target_compile_options(latchkey_sqlite3 PRIVATE -O2 -w)
if(LATCHKEY_SANITIZE)
  # It is one file and not ours: its memory is watched, its arithmetic is not. Half of a cold build went into it.
  target_compile_options(latchkey_sqlite3 PRIVATE -O1 -fno-sanitize=undefined)
endif()
target_link_libraries(latchkey_sqlite3 PRIVATE m Threads::Threads)
