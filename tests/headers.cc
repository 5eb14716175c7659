// Compiled for the precompiled headers it carries (CMakeLists.txt).
