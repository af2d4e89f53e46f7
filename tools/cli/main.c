/* tools/cli/main.c - the command `clebsch`: finds the subcommand. */
#include "tools/cli/tool.h"

#include <stdio.h>
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

typedef struct {
  int command, first; /* index of the command's name in argv */
} choice;

static void refuse_command(struct argp_state *state, const char *name) {
  clb_text t = {0};
  if (name) clb_text_add(&t, "no command '%s'; commands are", name);
  else clb_text_add(&t, "name a command; commands are");
  for (int i = 0; i < COMMANDS; i++) clb_text_add(&t, "%s %s", i ? "," : "", commands[i].name);
  if (t.failed) fatal("out of memory");
  argp_error(state, "%s", t.s);
  clb_text_free(&t);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  choice *c = state->input;
  if (key == ARGP_KEY_NO_ARGS) refuse_command(state, NULL);
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  for (c->command = 0; c->command < COMMANDS; c->command++)
    if (!strcmp(arg, commands[c->command].name)) break;
  if (c->command == COMMANDS) refuse_command(state, arg);
  c->first = state->next - 1;
  state->next = state->argc; /* the other arguments belong to the command */
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

int main(int argc, char **argv) {
  static const struct argp argp = {
      .parser = parse,
      .args_doc = "COMMAND ...",
      .doc = "Kernels of O(3)-equivariant networks on Intel, NVIDIA and AMD GPUs and on CPUs.\v"
             "See also: clebsch COMMAND --help.\n\n"
             "Exit status: 0 success, 1 a check or a run failed, 2 wrong arguments.",
      .help_filter = complete_help};
  argp_program_version = "clebsch " CLB_VERSION;
  argp_err_exit_status = EXIT_USAGE;
  json_fatal_without_memory();
  choice c = {0};
  char name[] = "clebsch", title[32];
  if (argc > 0) argv[0] = name;
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &c);
  snprintf(title, sizeof title, "clebsch %s", commands[c.command].name);
  argv[c.first] = title;
  int status = commands[c.command].run(argc - c.first, argv + c.first);
  if (fflush(stdout) || ferror(stdout)) {
    warn("standard output could not be written");
    status = EXIT_FAILED;
  }
  return status;
}
