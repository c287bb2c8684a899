// What the shared library exports: the classes and functions marked RONDO_API, and nothing else.
//
// The mark means something only while the shared library itself is compiled. A program that uses Rondo needs no
// definition, and a library that contains a static Rondo does not pass its symbols on.
#pragma once

#if !defined(RONDO_BUILDING_SHARED)
#define RONDO_API
#elif defined(_WIN32)
#define RONDO_API __declspec(dllexport)
#else
#define RONDO_API [[gnu::visibility("default")]]
#endif
