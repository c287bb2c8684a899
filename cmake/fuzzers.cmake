# Fuzz targets of what reads files that nobody has to trust, and their seeds; see tools/fuzz.sh.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "rondo: RONDO_BUILD_FUZZERS needs clang for its libFuzzer, but the compiler is "
    "${CMAKE_CXX_COMPILER_ID}; use --preset fuzz or -DCMAKE_CXX_COMPILER=clang++")
endif()

# The library again, with coverage counters and without what needs Vulkan.
file(GLOB RONDO_FUZZED_SOURCES CONFIGURE_DEPENDS graph/*.cpp graph/ops/*.cpp models/arch/*.cpp models/formats/*.cpp models/tokenizers/*.cpp)
add_library(rondo_fuzzed STATIC ${RONDO_FUZZED_SOURCES} models/byte_source.cpp models/json.cpp models/nearest.cpp models/network.cpp
  models/step_builder.cpp models/utf8.cpp models/weights.cpp runtime/fmt.cpp runtime/status.cpp ${RONDO_UNICODE_CLASS_TABLE})
target_compile_options(rondo_fuzzed PRIVATE -fno-exceptions -fno-rtti -fsanitize=fuzzer-no-link)
target_compile_definitions(rondo_fuzzed PRIVATE JSON_NOEXCEPTION=1)
target_link_libraries(rondo_fuzzed PUBLIC rondo_internal_headers)

add_executable(rondo_fuzz_seeds tests/fuzz/make_seeds.cpp)
target_link_libraries(rondo_fuzz_seeds PRIVATE rondo_fuzzed)
add_custom_target(rondo_fuzzers DEPENDS rondo_fuzz_seeds)

# The simulator as far as it reads modules and runs them.
find_package(SPIRV-Tools-opt REQUIRED)
include(cmake/instruction_names.cmake)
set(simulator ${PROJECT_SOURCE_DIR}/tools/simulator)
add_library(rondo_fuzzed_simulator STATIC ${simulator}/access_counts.cpp ${simulator}/accesses.cpp ${simulator}/arithmetic.cpp ${simulator}/between_lanes.cpp
  ${simulator}/declarations.cpp ${simulator}/decode.cpp ${simulator}/instruction_tables.cpp ${simulator}/machine.cpp ${simulator}/matrices.cpp ${simulator}/memory.cpp ${simulator}/prepare.cpp ${simulator}/simulate.cpp)
target_compile_options(rondo_fuzzed_simulator PRIVATE -fsanitize=fuzzer-no-link)
target_include_directories(rondo_fuzzed_simulator SYSTEM PUBLIC ${RONDO_SPIRV_HEADERS_DIR})
target_link_libraries(rondo_fuzzed_simulator PUBLIC rondo_fuzzed PRIVATE SPIRV-Tools-opt)
# Its seeds: kernels, as glslang makes modules of them.
file(GLOB kernels CONFIGURE_DEPENDS tests/fuzz/spirv/*.comp)
foreach(kernel IN LISTS kernels)
  get_filename_component(name ${kernel} NAME_WE)
  set(seed ${PROJECT_BINARY_DIR}/seeds/spirv/${name}.spv)
  add_custom_command(OUTPUT ${seed} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/seeds/spirv
    COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 -o ${seed} ${kernel} DEPENDS ${kernel} VERBATIM)
  list(APPEND seeds ${seed})
endforeach()
add_custom_target(rondo_fuzz_spirv_seeds DEPENDS ${seeds})
add_dependencies(rondo_fuzzers rondo_fuzz_spirv_seeds)

foreach(format graph_json gguf safetensors spirv)
  add_executable(${format}_fuzzer tests/fuzz/${format}_fuzzer.cpp)
  target_compile_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${format}_fuzzer PRIVATE rondo_fuzzed)
  add_dependencies(rondo_fuzzers ${format}_fuzzer)
endforeach()
target_link_libraries(spirv_fuzzer PRIVATE rondo_fuzzed_simulator)
