// Functions of one element by number: those of the enumeration Activation (graph/graph.h). Read by C++ and GLSL alike.
#ifndef RONDO_SHADERS_ACTIVATION_H
#define RONDO_SHADERS_ACTIVATION_H
#define RONDO_ACTIVATION_NONE 0
#define RONDO_ACTIVATION_RELU 1
#define RONDO_ACTIVATION_GELU 2
#define RONDO_ACTIVATION_GELU_TANH 3
#define RONDO_ACTIVATION_QUICK_GELU 4
#define RONDO_ACTIVATION_SILU 5
#define RONDO_ACTIVATION_TANH 6
#define RONDO_ACTIVATION_SIGMOID 7
#define RONDO_ACTIVATION_EXP 8
#define RONDO_ACTIVATION_NEG 9
#endif
