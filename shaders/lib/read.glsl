// How buffers are declared that kernels only read. Compilers move loads from a buffer that nobody writes to where they are used: with RONDO_STAGES_LOADS, for kernels
// that load a tile while they multiply another, it is one that might be written, so that loads stay ahead of these products.
#ifndef RONDO_READ
#ifdef RONDO_STAGES_LOADS
#define RONDO_READ
#else
#define RONDO_READ readonly
#endif
#endif
