/* kim_driver.c - the model driver of KIM's API: opens a model, and says what it can do. */
#include "hosts/kim/kim_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hosts/kim/kim_item.h"
#include "hosts/kim/kim_settings.h"

int kim_shared_library_schema_version = KIM_SCHEMA;
kim_item kim_shared_library_schema;

__attribute__((constructor)) static void fill(void) {
  kim_shared_library_schema = (kim_item){.type = KIM_COLLECTION_ITEM_TYPE_modelDriver,
                                         .name = KIM_DRIVER,
                                         .language = KIM_LANGUAGE_NAME_c,
                                         .create = (KIM_Function *)kim_driver_create};
}

/* What a simulator is told when a model cannot be created. */
static bool fail(const KIM_ModelDriverCreate *k, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const KIM_ModelDriverCreate *k, const char *format, ...) {
  char why[1024];
  va_list arguments;
  const int n = snprintf(why, sizeof why, "Clebsch: ");
  va_start(arguments, format);
  vsnprintf(why + n, sizeof why - (size_t)n, format, arguments);
  va_end(arguments);
  KIM_ModelDriverCreate_LogEntry(k, KIM_LOG_VERBOSITY_error, why, __LINE__, __FILE__);
  return false;
}

static void close_driver(kim_driver *d) {
  clb_model_destroy(&d->model);
  clb_context_destroy(&d->ctx);
  free(d->pairs.senders);
  free(d->pairs.receivers);
  free(d->pairs.species);
  free(d->pairs.counted);
  free(d->positions);
  free(d);
}

static int destroy(KIM_ModelDestroy *k) {
  void *d;
  KIM_ModelDestroy_GetModelBufferPointer(k, &d);
  close_driver(d);
  return 0;
}

static int create_arguments(const KIM_ModelCompute *k, KIM_ModelComputeArgumentsCreate *a) {
  const KIM_ComputeArgumentName results[] = {
      KIM_COMPUTE_ARGUMENT_NAME_partialEnergy, KIM_COMPUTE_ARGUMENT_NAME_partialForces,
      KIM_COMPUTE_ARGUMENT_NAME_partialParticleEnergy, KIM_COMPUTE_ARGUMENT_NAME_partialVirial,
      KIM_COMPUTE_ARGUMENT_NAME_partialParticleVirial};
  int bad = 0;
  (void)k;
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    bad |= KIM_ModelComputeArgumentsCreate_SetArgumentSupportStatus(a, results[i],
                                                                    KIM_SUPPORT_STATUS_optional);
  return bad;
}

static int destroy_arguments(const KIM_ModelCompute *k, KIM_ModelComputeArgumentsDestroy *a) {
  (void)k, (void)a;
  return 0;
}

/* ---- creation ---- */

static bool open_model(const KIM_ModelDriverCreate *k, kim_driver *d) {
  static kim_settings s;
  const char *folder, *file;
  char path[2 * PATH_MAX], error[PATH_MAX + 512];
  int n;
  KIM_ModelDriverCreate_GetParameterFileDirectoryName(k, &folder);
  KIM_ModelDriverCreate_GetNumberOfParameterFiles(k, &n);
  if (n < 1 || KIM_ModelDriverCreate_GetParameterFileBasename(k, 0, &file))
    return fail(k, "the model has no parameter file; the first one must be a " KIM_SETTINGS);
  snprintf(path, sizeof path, "%s/%s", folder, file);
  if (!kim_settings_read(path, folder, &s, error, sizeof error)) return fail(k, "%s", error);
  if (clb_context_create("", &d->ctx) || clb_model_open(d->ctx, s.model, &s.options, &d->model) ||
      clb_model_describe(d->model, &d->info))
    return fail(k, "%s", clb_error(d->ctx));
  const char *note = clb_context_note(d->ctx);
  if (note) KIM_ModelDriverCreate_LogEntry(k, KIM_LOG_VERBOSITY_warning, note, __LINE__, __FILE__);
  return true;
}

/* All of a model's elements that KIM knows. */
static bool set_species(KIM_ModelDriverCreate *k, const kim_driver *d) {
  for (int i = 0; i < d->info.n_species; i++) {
    const KIM_SpeciesName name = KIM_SpeciesName_FromString(d->info.symbols[i]);
    if (KIM_SpeciesName_Known(name) && KIM_ModelDriverCreate_SetSpeciesCode(k, name, i))
      return fail(k, "KIM does not take the element %s", d->info.symbols[i]);
  }
  return true;
}

/* What one Angstrom^length eV^energy is in the simulator's units; 0: KIM does not know. */
static double unit(KIM_LengthUnit of_length, KIM_EnergyUnit of_energy, double length,
                   double energy) {
  double factor;
  const int bad = KIM_ModelDriverCreate_ConvertUnit(
      KIM_LENGTH_UNIT_A, KIM_ENERGY_UNIT_eV, KIM_CHARGE_UNIT_e, KIM_TEMPERATURE_UNIT_K,
      KIM_TIME_UNIT_ps, of_length, of_energy, KIM_CHARGE_UNIT_e, KIM_TEMPERATURE_UNIT_K,
      KIM_TIME_UNIT_ps, length, energy, 0, 0, 0, &factor);
  return bad ? 0 : factor;
}

static bool set_units(KIM_ModelDriverCreate *k, kim_driver *d, KIM_LengthUnit length,
                      KIM_EnergyUnit energy) {
  d->length = unit(length, energy, 1, 0);
  d->energy = unit(length, energy, 0, 1);
  if (!(d->length > 0 && d->energy > 0) ||
      KIM_ModelDriverCreate_SetUnits(k, length, energy, KIM_CHARGE_UNIT_unused,
                                     KIM_TEMPERATURE_UNIT_unused, KIM_TIME_UNIT_unused))
    return fail(k, "KIM cannot convert Angstrom and eV to %s and %s",
                KIM_LengthUnit_ToString(length), KIM_EnergyUnit_ToString(energy));
  return true;
}

/* Features travel one cutoff in each layer. */
static void set_distances(KIM_ModelDriverCreate *k, kim_driver *d) {
  d->cutoff = d->length * d->info.r_max;
  d->influence = d->cutoff * (d->info.exchanges + 1);
  d->only_contributing = d->info.exchanges == 0;
  KIM_ModelDriverCreate_SetInfluenceDistancePointer(k, &d->influence);
  KIM_ModelDriverCreate_SetNeighborListPointers(k, 1, &d->cutoff, &d->only_contributing);
}

static bool set_routines(KIM_ModelDriverCreate *k) {
  const struct {
    KIM_ModelRoutineName name;
    KIM_Function *call;
  } routines[] = {
      {KIM_MODEL_ROUTINE_NAME_Destroy, (KIM_Function *)destroy},
      {KIM_MODEL_ROUTINE_NAME_ComputeArgumentsCreate, (KIM_Function *)create_arguments},
      {KIM_MODEL_ROUTINE_NAME_ComputeArgumentsDestroy, (KIM_Function *)destroy_arguments},
      {KIM_MODEL_ROUTINE_NAME_Compute, (KIM_Function *)kim_compute}};
  bool good = !KIM_ModelDriverCreate_SetModelNumbering(k, KIM_NUMBERING_zeroBased);
  for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
    good = good && !KIM_ModelDriverCreate_SetRoutinePointer(
                       k, routines[i].name, KIM_LANGUAGE_NAME_c, 1, routines[i].call);
  return good || fail(k, "KIM does not take the driver's routines");
}

int kim_driver_create(KIM_ModelDriverCreate *k, KIM_LengthUnit length, KIM_EnergyUnit energy,
                      KIM_ChargeUnit charge, KIM_TemperatureUnit temperature, KIM_TimeUnit time) {
  kim_driver *d = calloc(1, sizeof *d);
  (void)charge, (void)temperature, (void)time;
  if (!d) return fail(k, "no memory"), 1;
  if (!open_model(k, d) || !set_units(k, d, length, energy) || !set_species(k, d) ||
      !set_routines(k)) {
    close_driver(d);
    return 1;
  }
  set_distances(k, d);
  KIM_ModelDriverCreate_SetModelBufferPointer(k, d);
  return 0;
}
