# Writes kernel_counts.inc: what compilers and the simulator count of kernels (tools/isa/budget.txt, tools/simulator/budget.txt), for
# predictions: { chip, kernel, waves of a core, instructions per multiply-add }, the first two as places in lists, and { kernel, type, lanes, useful
# bytes of a line, activation bytes for a weight byte, dependent loads }.
set(chips "")
set(kernels "")
set(compiled "")
set(simulated "")
foreach(file isa simulator)
  set(budget ${PROJECT_SOURCE_DIR}/tools/${file}/budget.txt)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${budget})
  file(STRINGS ${budget} lines REGEX "^[a-z].*[0-9]")
  foreach(line IN LISTS lines)
    if(file STREQUAL isa AND line MATCHES "^([a-z0-9]+) +[-0-9]+ +([-0-9]+) +[-0-9]+ +[-0-9]+ +([0-9.]+) +([^*]+)$")
      set(chip "\"${CMAKE_MATCH_1}\"")
      set(kernel "\"${CMAKE_MATCH_4}\"")
      set(count "${CMAKE_MATCH_3}f")
      string(REPLACE "-" "0" waves "${CMAKE_MATCH_2}")
      if(line MATCHES "^(navi|gfx)")
        math(EXPR waves "2 * ${waves}")  # AMD's are of a SIMD, and a core has two
      endif()
      list(APPEND chips ${chip})
      list(APPEND kernels ${kernel})
      list(REMOVE_DUPLICATES chips)
      list(REMOVE_DUPLICATES kernels)
      list(FIND chips ${chip} chip)
      list(FIND kernels ${kernel} kernel)
      string(APPEND compiled "{${chip}, ${kernel}, ${waves}, ${count}},\n")
    elseif(file STREQUAL simulator AND line MATCHES "^([a-z_/]+) \\| (1 row|input \\(1,|query \\(1,|logits \\(1,)[^|]*\\| ([^ ]+) \\| ([0-9]+) \\|")
      set(head "\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_3}\", ${CMAKE_MATCH_4}")
      set(figures "")
      foreach(name useful_weight_bytes_per_line activation_bytes_per_weight_byte dependent_loads)
        if(line MATCHES "${name} [<>]= ([0-9.]+)")
          string(APPEND figures ", ${CMAKE_MATCH_1}")
        else()
          string(APPEND figures ", 0")
        endif()
      endforeach()
      string(APPEND simulated "{${head}${figures}},\n")
    endif()
  endforeach()
endforeach()
list(JOIN chips ",\n" chips)
list(JOIN kernels ",\n" kernels)
file(CONFIGURE OUTPUT ${RONDO_GENERATED_DIR}/kernel_counts.inc CONTENT
"// Generated from the budgets of tools/isa and tools/simulator.
constexpr std::string_view kChips[] = {
@chips@};
constexpr std::string_view kKernels[] = {
@kernels@};
constexpr CompiledCount kCompiled[] = {
@compiled@};
constexpr SimulatedCount kSimulated[] = {
@simulated@};
" @ONLY)
