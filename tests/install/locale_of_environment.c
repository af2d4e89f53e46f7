/* tests/install/locale_of_environment.c - linked into a program, makes it use the locale of LC_ALL
   from its start. */
#include <locale.h>

__attribute__((constructor)) static void follow(void) { setlocale(LC_ALL, ""); }
