/* tools/cli/main.c - the command `clebsch`: finds the subcommand. */
#include "tools/cli/tool.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *title;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"devices", "clebsch devices", devices_main},
    {"check", "clebsch check", check_main},
    {"source", "clebsch source", source_main},
    {"bench", "clebsch bench", bench_main},
    {"compare", "clebsch compare", compare_main},
    {"tune", "clebsch tune", tune_main},
    {"ablation", "clebsch ablation", ablation_main},
    {"convert", "clebsch convert", convert_main},
    {"energy", "clebsch energy", energy_main},
    {"md", "clebsch md", md_main},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

typedef struct {
  int command, first; /* index in argv of the command's name */
} choice;

static error_t parse(int key, char *arg, struct argp_state *state) {
  choice *c = state->input;
  if (key == ARGP_KEY_NO_ARGS) argp_error(state, "name a command: devices, check, source, bench, compare, tune, ablation, convert, energy or md");
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  for (c->command = 0; c->command < COMMANDS; c->command++)
    if (!strcmp(arg, commands[c->command].name)) break;
  if (c->command == COMMANDS) argp_error(state, "no command '%s': devices, check, source, bench, compare, tune, ablation, convert, energy or md", arg);
  c->first = state->next - 1;
  state->next = state->argc; /* the rest is the command's */
  return 0;
}

int main(int argc, char **argv) {
  static const struct argp argp = {
      .parser = parse,
      .args_doc = "COMMAND ...",
      .doc = "Kernels of O(3)-equivariant networks on Intel, NVIDIA and AMD GPUs and on CPUs.\v"
             "Commands:\n"
             "  devices     what this machine can run on and compile for\n"
             "  check       every op against a float64 reference, on a device\n"
             "  source      the kernel of an op in a device's language\n"
             "  bench       time, bytes and error of an op, and the device's ceilings\n"
             "  compare     what bench measured on several devices, side by side\n"
             "  tune        which schedule of an op's kernels is the fastest here\n"
             "  ablation    what each optimisation is worth here\n"
             "  convert     another program's model to a safetensors file\n"
             "  energy      energy, forces and stress of the atoms in a file\n"
             "  md          molecular dynamics of them\n\n"
             "Each explains itself: clebsch COMMAND --help.\n\n"
             "Exit status: 0 all is well, 1 a check or a run failed, 2 a mistake in the arguments."};
  argp_program_version = "clebsch " CLB_VERSION;
  argp_err_exit_status = EXIT_USAGE;
  json_give_up_without_memory();
  choice c = {0};
  char name[] = "clebsch", title[32];
  if (argc > 0) argv[0] = name;
  parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &c);
  snprintf(title, sizeof title, "%s", commands[c.command].title);
  argv[c.first] = title;
  int status = commands[c.command].run(argc - c.first, argv + c.first);
  if (fflush(stdout) || ferror(stdout)) {
    complain("standard output could not be written");
    status = EXIT_FAILED;
  }
  return status;
}
