# Libraries from Debian 12 (tools/packages.txt names the packages). Our code links the
# expanse_dep_* targets only; third-party headers count as system headers.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED)

function(expanse_pkg_dep name module)
  pkg_check_modules(PC_${name} REQUIRED ${module})
  add_library(expanse_dep_${name} INTERFACE)
  target_include_directories(expanse_dep_${name} SYSTEM INTERFACE ${PC_${name}_INCLUDE_DIRS})
  target_compile_options(expanse_dep_${name} INTERFACE ${PC_${name}_CFLAGS_OTHER})
  target_link_libraries(expanse_dep_${name} INTERFACE ${PC_${name}_LINK_LIBRARIES})
endfunction()

expanse_pkg_dep(fmt fmt)
expanse_pkg_dep(sqlite sqlite3)
expanse_pkg_dep(curl libcurl)
expanse_pkg_dep(zstd libzstd)
expanse_pkg_dep(cjose cjose)
expanse_pkg_dep(git2 libgit2)

add_library(expanse_dep_boost INTERFACE)  # headers only: Beast, Asio, Math, JSON (src.hpp in one .cc)
target_include_directories(expanse_dep_boost SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
add_library(expanse_dep_openssl INTERFACE)
target_link_libraries(expanse_dep_openssl INTERFACE OpenSSL::SSL OpenSSL::Crypto)
add_library(expanse_dep_protobuf INTERFACE)
target_link_libraries(expanse_dep_protobuf INTERFACE protobuf::libprotobuf)
