/* tools/cli/tool.h - shared by the subcommands of `clebsch`: options, names, messages, tables,
   JSON. */
#ifndef CLB_TOOLS_CLI_TOOL_H
#define CLB_TOOLS_CLI_TOOL_H

#include <argp.h>
#include <clebsch/clebsch.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/options.h"
#include "tools/cli/text_table.h"

enum { EXIT_GOOD, EXIT_FAILED, EXIT_USAGE }; /* of the command */

/* Each runs one subcommand on its own arguments (argv[0]: "clebsch devices") and returns the exit
   status. */
#define COMMAND(name, summary, run) int run(int argc, char **argv);
#include "tools/cli/commands.def"
#undef COMMAND

/* "clebsch: ..." on standard error. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* warn, then exit with EXIT_FAILED: for failures that no subcommand can recover from. */
void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints clb_context_note, once. */
void print_note(const clb_context *ctx);
bool ends_in(const char *text, const char *end);
void *allocate(size_t n, size_t size);         /* zeroed; exits if there is no memory */
void *enlarge(void *p, size_t n, size_t size); /* realloc that exits if there is no memory; the
                                                  caller holds p until it returns, so nothing
                                                  leaks */
/* Prints a line on standard error that the next one replaces; only if that is a terminal. NULL
   clears it. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same until announce_end; where progress is not shown, prints the line if that takes longer
   than a few seconds. */
void announce(const char *format, ...) __attribute__((format(printf, 1, 2)));
void announce_end(void);
/* The exit status for a failed call: a usage error, or a failure. */
int failure(clb_status status);

/* ---- names ---- */
enum { DTYPES = 4, PASSES = 4 };
extern const char *const dtype_names[DTYPES], *const pass_names[PASSES];

/* ---- options that several subcommands take: children of their argp ---- */
enum { MAX_DEVICES = 64 };
typedef struct {
  bool json;
  int n_devices; /* at least 1 after parsing: "" is the default device */
  const char *devices[MAX_DEVICES];
} device_options;
extern const struct argp device_argp; /* --device, --json; input: device_options */

typedef struct {
  unsigned passes, dtypes; /* bit sets; 0: not given */
} kernel_options;
extern const struct argp kernel_argp; /* --pass, --dtype; input: kernel_options */

/* An integer in [low, high], also as "1e6"; otherwise a usage error naming `option`. */
int64_t whole_number(const struct argp_state *state, const char *option, const char *text,
                     int64_t low, int64_t high);

bool is_interpreter(const clb_device_info *info);
/* Opens each device in turn and calls use(); returns the worst exit status. */
int on_each_device(const device_options *devices,
                   int (*use)(clb_context *ctx, const clb_device_info *info, const char *asked,
                              void *user),
                   void *user);

/* ---- JSON ---- */
void json_fatal_without_memory(void); /* makes jansson exit if there is no memory; call once, before
                                         any JSON */
json_t *json_text(const char *s);     /* never NULL: bytes that are not UTF-8 become '?' */
json_t *json_number(double x);        /* null where x is not finite */
json_t *json_count(int64_t x);        /* null where x < 0 */
void json_add(json_t *object, const char *key, json_t *value); /* takes value */
typedef struct {
  const char *key;
  json_t *value;
} json_pair;
void json_add_pairs(json_t *object, const json_pair *pairs, int n);
#define JSON_ADD(object, ...)                                                                      \
  json_add_pairs(object, (const json_pair[]){__VA_ARGS__},                                         \
                 (int)(sizeof((const json_pair[]){__VA_ARGS__}) / sizeof(json_pair)))
/* Writes `, "name": [...]` for files that people also read and compare line by line: one element
   per line, reals with `digits` digits. false: it cannot be written. */
bool json_write_list(FILE *out, const char *name, const json_t *list, int digits);
json_t *json_array_add(json_t *array, json_t *value); /* takes value and returns it */
/* Writes the array and frees it. */
void json_print(json_t *array);

#endif
