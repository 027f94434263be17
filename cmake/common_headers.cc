// Only there so that a library and a program own the headers that the others share precompiled.
int main() { return 0; }
