/* tools/cli/options.h - reading options, and what was meant by unknown words. */
#ifndef CLB_TOOLS_CLI_OPTIONS_H
#define CLB_TOOLS_CLI_OPTIONS_H

#include <argp.h>

/* argp_parse, with -h, --help, --usage and --version (unless ARGP_NO_HELP), which exits if the
   arguments are wrong or there is no memory for them. Of an unknown option it says which one may
   be meant. */
void parse_arguments(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/* The name that is most like a word; NULL if none is like it. */
const char *nearest_name(const char *word, const char *const names[], int n);

/* Copies the text of an option, which has at most size - 1 letters. */
void keep_text(const struct argp_state *state, const char *option, const char *text, char *to,
               size_t size);
/* The place of a name among those of an option, of which some may be NULL. */
int name_among(const struct argp_state *state, const char *option, const char *name,
               const char *const *names, int n);

#endif
