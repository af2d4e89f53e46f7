/* tools/cli/main.c - the command `clebsch`: finds the subcommand. */
#include "tools/cli/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text.h"

static const struct {
  const char *name, *summary;
  int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, summary, run) {name, summary, run},
#include "tools/cli/commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int command_named(const char *name) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(name, commands[i].name)) return i;
  return -1;
}

static void refuse_command(struct argp_state *state, const char *name) {
  const char *names[COMMANDS], *near = NULL;
  clb_text t = {0};
  for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
  if (name) {
    near = nearest_name(name, names, COMMANDS);
    clb_text_add(&t, "no command '%s'; ", name);
  } else clb_text_add(&t, "name a command; ");
  if (near) clb_text_add(&t, "did you mean %s? ", near);
  clb_text_add(&t, "commands are");
  for (int i = 0; i < COMMANDS; i++) clb_text_add(&t, "%s %s", i ? "," : "", commands[i].name);
  if (t.failed) fatal("out of memory");
  argp_error(state, "%s", t.s);
  clb_text_free(&t);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  int *command = state->input;
  if (key == ARGP_KEY_NO_ARGS) refuse_command(state, NULL);
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if ((*command = command_named(arg)) < 0) refuse_command(state, arg);
  return 0;
}

/* Inserts the list of commands before the help text that follows the options. */
static char *complete_help(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)text;
  clb_text t = {0};
  clb_text_add(&t, "Commands:\n");
  for (int i = 0; i < COMMANDS; i++)
    clb_text_add(&t, "  %-10s  %s\n", commands[i].name, commands[i].summary);
  clb_text_add(&t, "\n%s", text);
  if (t.failed) fatal("out of memory");
  return t.s; /* argp frees it */
}

/* `help COMMAND ...` is `COMMAND ... --help`, and `help` alone --help. */
static void turn_help(int argc, char **argv) {
  static char help[] = "--help";
  if (argc < 2 || strcmp(argv[1], "help") != 0) return;
  memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
  argv[argc - 1] = help;
}

int main(int argc, char **argv) {
  static const struct argp argp = {
      .parser = parse,
      .args_doc = "COMMAND ...",
      .doc = "Kernels of O(3)-equivariant networks on Intel, NVIDIA and AMD GPUs and on CPUs.\v"
             "See also: clebsch help COMMAND.\n\n"
             "Exit status: 0 success, 1 a check or a run failed, 2 wrong arguments.",
      .help_filter = complete_help};
  argp_program_version = "clebsch " CLB_VERSION;
  if (*CLB_REPORTS) argp_program_bug_address = CLB_REPORTS;
  argp_err_exit_status = EXIT_USAGE;
  json_fatal_without_memory();
  char name[] = "clebsch", title[32];
  int command = 0, first = 1;
  if (argc > 0) argv[0] = name;
  turn_help(argc, argv);
  while (first < argc && argv[first][0] == '-') first++; /* none of its options has an argument */
  parse_arguments(&argp, first < argc ? first + 1 : argc, argv, ARGP_IN_ORDER, &command);
  snprintf(title, sizeof title, "clebsch %s", commands[command].name);
  argv[first] = title;
  int status = commands[command].run(argc - first, argv + first);
  if (fflush(stdout) || ferror(stdout)) {
    warn("standard output could not be written");
    status = EXIT_FAILED;
  }
  return status;
}
