# Compiler launcher, linker, warnings and sanitizers, for every target of the project.
find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the source tree and no directory in the hash: checkouts share one cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(MOLD mold)
if(MOLD AND NOT EXPANSE_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()

# -g1 keeps line numbers for stack traces; full debug info doubles compile and link time here.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(expanse_warnings INTERFACE)
target_compile_options(expanse_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 false positives with std::string at -O2 (GCC PR 105329, 105651).
  target_compile_options(expanse_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()

if(EXPANSE_SANITIZE)
  add_compile_options(-fsanitize=${EXPANSE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EXPANSE_SANITIZE})
  if(EXPANSE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio uses fences, which ThreadSanitizer does not model; g++ says so, as an error under -Werror.
    add_compile_options(-Wno-tsan)
  endif()
endif()
