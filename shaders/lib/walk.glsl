// Strided views of four dimensions, leading ones 1.

// Index of element i3 of flattened row `row`.
uvec4 index_of(uint row, uint i3, uint dim1, uint dim2) { return uvec4(row / dim2 / dim1, row / dim2 % dim1, row % dim2, i3); }

uint element_at(uint offset, uvec4 strides, uvec4 index) {
  const uvec4 steps = strides * index;
  return offset + steps.x + steps.y + steps.z + steps.w;
}
