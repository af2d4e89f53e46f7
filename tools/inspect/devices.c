/* tools/inspect/devices.c - `clebsch devices`: the devices and compile targets of this machine. */
#include "tools/cli/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static error_t parse(int key, char *arg, struct argp_state *state) {
  if (key == ARGP_KEY_ARG) argp_error(state, "'%s' is one argument too many", arg);
  if (key != 'j') return ARGP_ERR_UNKNOWN;
  *(bool *)state->input = true;
  return 0;
}

static void collect(const clb_device_info *info, void *user) {
  json_t *d = json_array_add(user, json_object()), *sizes = json_array();
  JSON_ADD(d, {"name", json_text(info->name)}, {"backend", json_text(info->backend)},
           {"vendor", json_text(info->vendor)}, {"description", json_text(info->description)},
           {"driver", json_text(info->driver)}, {"runs", json_boolean(info->runs)},
           {"memory_bytes", json_count((int64_t)info->memory_bytes)},
           {"f64", json_boolean(info->f64)}, {"sub_group_sizes", sizes});
  for (int i = 0; i < 8 && info->sub_group_sizes[i]; i++)
    json_array_add(sizes, json_count(info->sub_group_sizes[i]));
}

static const char *text(const json_t *device, const char *key) {
  return json_string_value(json_object_get(device, key));
}

enum { MADE = 512 };
enum { NAME, RUNS, MEMORY, F64, SUB_GROUPS, DESCRIPTION, COLUMNS };

static bool is_true(const json_t *device, const char *key) {
  return json_is_true(json_object_get(device, key));
}

/* cells point into the device or into `made`. */
static void cells_of(const json_t *d, const char *cells[COLUMNS], char made[3][MADE]) {
  static const char *const use[2][2] = {{"compiles", "compiles *"}, {"runs", "runs *"}};
  int64_t bytes = json_integer_value(json_object_get(d, "memory_bytes"));
  made[0][0] = made[1][0] = 0;
  if (bytes) snprintf(made[0], sizeof made[0], "%.1f GiB", (double)bytes / 0x1p30);
  size_t i;
  json_t *size;
  json_array_foreach(json_object_get(d, "sub_group_sizes"), i, size) {
    size_t used = strlen(made[1]);
    snprintf(made[1] + used, sizeof made[1] - used, "%s%" JSON_INTEGER_FORMAT, i ? " " : "",
             json_integer_value(size));
  }
  cells[NAME] = text(d, "name");
  cells[RUNS] = use[is_true(d, "runs")][is_true(d, "default")];
  cells[MEMORY] = made[0];
  cells[F64] = is_true(d, "f64") ? "yes" : "no";
  cells[SUB_GROUPS] = made[1];
  snprintf(made[2], sizeof made[2], "%s; %s", text(d, "description"), text(d, "driver"));
  cells[DESCRIPTION] = made[2];
}

/* Marks the device that an empty name stands for, if one opens. */
static void mark_default(json_t *devices) {
  clb_context *ctx = NULL;
  clb_device_info info = {0};
  const bool good = !clb_context_create("", &ctx) && !clb_context_device(ctx, &info);
  size_t i;
  json_t *d;
  json_array_foreach(devices, i, d) {
    const bool is = good && !strcmp(text(d, "name"), info.name);
    json_add(d, "default", json_boolean(is));
  }
  clb_context_destroy(&ctx);
}

/* The default, then what runs, then what only compiles. */
static json_t *sorted(json_t *devices) {
  json_t *all = json_array(), *d;
  size_t i;
  for (int rank = 2; rank >= 0; rank--) json_array_foreach(devices, i, d) {
      if (rank == (is_true(d, "default") ? 2 : is_true(d, "runs")))
        json_array_add(all, json_incref(d));
    }
  json_decref(devices);
  return all;
}

static void print(json_t *devices) {
  table t = {.n = COLUMNS,
             .titles = {"name", "use", ">memory", "f64", "sub-groups", "description; driver"}};
  const char *cells[COLUMNS];
  char made[3][MADE];
  bool compiler = false, cpu = false, marked = false;
  size_t i;
  json_t *d;
  json_array_foreach(devices, i, d) {
    cells_of(d, cells, made);
    for (int c = 0; c < DESCRIPTION; c++) table_fit(&t, c, cells[c]);
    marked |= is_true(d, "default");
    bool of_cpu = !strcmp(text(d, "backend"), "cpu");
    cpu |= of_cpu;
    compiler |= of_cpu && !strstr(text(d, "description"), "interpreter");
  }
  table_titles(&t);
  json_array_foreach(devices, i, d) {
    cells_of(d, cells, made);
    table_line(&t, cells);
  }
  if (marked) puts("\n* taken where no device is named");
  if (cpu && !compiler)
    puts("\ncpu has only the interpreter, which is slow: no C compiler was found.");
}

int devices_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"json", 'j', NULL, 0, "Print one JSON array, nothing else", 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .doc = "Lists the devices of this machine (runs), and targets for which it can compile "
             "without the hardware (compiles).\v"
             "Pass the name in the first column to --device of the other commands. * marks the "
             "one that is taken without --device: $CLB_DEVICE, else the first that opens."};
  bool json = false;
  parse_arguments(&argp, argc, argv, 0, &json);
  json_t *devices = json_array();
  clb_status status = clb_devices(collect, devices);
  if (status) warn("devices: %s", clb_status_text(status));
  mark_default(devices);
  devices = sorted(devices);
  if (!json) print(devices);
  if (json) json_print(devices);
  else json_decref(devices);
  return status ? EXIT_FAILED : EXIT_GOOD;
}
