// CMake wants a source beside a precompiled header.
int main() { return 0; }
