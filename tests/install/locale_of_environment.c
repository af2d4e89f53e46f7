/* tests/install/locale_of_environment.c - linked to a program, makes it follow LC_ALL from its
   start. */
#include <locale.h>

__attribute__((constructor)) static void follow(void) { setlocale(LC_ALL, ""); }
