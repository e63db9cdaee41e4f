// CMake needs a source file beside a precompiled header.
