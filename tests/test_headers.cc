// Only there so that a program owns the headers that the tests' programs share precompiled.
int main() { return 0; }
