# expanse_proto(FILES...): C++ messages by protoc and service classes by our own plugin
# (tools/protoc_gen_expanse), in one library expanse_proto. The plugin fails the build when an
# rpc does not name the permission it needs.
function(expanse_proto)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(file ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    set(outputs ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.rpc.cc ${out}/${stem}.rpc.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND protobuf::protoc -I ${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${out}
              --plugin=protoc-gen-expanse=$<TARGET_FILE:protoc-gen-expanse> --expanse_out=${out} ${file}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      DEPENDS ${ARGN} protoc-gen-expanse
      COMMENT "proto ${file}" VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.rpc.cc)
  endforeach()
  add_library(expanse_proto STATIC ${sources})
  target_include_directories(expanse_proto SYSTEM PUBLIC ${out})
  target_include_directories(expanse_proto PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(expanse_proto PUBLIC expanse_dep_protobuf expanse_rpc)
endfunction()
