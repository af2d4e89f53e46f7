/* models/open.c - clb_model_open. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "models/dispersion/model_dispersion.h"
#include "src/base/folders.h"
#include "src/base/sizes.h"

static clb_status check_options(clb_context *ctx, const clb_model_options *o) {
  if (o->dtype != CLB_F64 && o->dtype != CLB_F32)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model_open: dtype is %d; it must be CLB_F64 or CLB_F32", (int)o->dtype);
  if (o->dtype == CLB_F64 && !ctx->device->limits.f64)
    return clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                    "clb_model_open: dtype is CLB_F64; %s has no double precision",
                    ctx->device->info.name);
  if (o->knots && o->knots != CLB_NO_KNOTS && (o->knots < 4 || o->knots > 1 << 20))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model_open: knots is %d; it must be 0, CLB_NO_KNOTS, or 4 ... %d",
                    o->knots, 1 << 20);
  if (!((o->skin >= 0 && isfinite(o->skin)) || o->skin == CLB_AUTO_SKIN))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model_open: skin is %g; it must be 0, positive, or CLB_AUTO_SKIN",
                    o->skin);
  if (o->block_atoms < 0)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model_open: block_atoms is %lld; it must be 0 or positive",
                    (long long)o->block_atoms);
  return clb_model_check_dispersion(ctx, o);
}

/* In single precision so many that interpolation has an error below rounding's; else none. */
static int knots_to_train(const clb_model_options *o) {
  enum { ENOUGH = 2048 };
  return o->knots > 0 ? o->knots : o->knots || o->dtype == CLB_F64 ? CLB_NO_KNOTS : ENOUGH;
}

/* Opens the file that is meant by a path, or by the name of a model. */
static clb_status load(clb_model *m, const char *asked) {
  const int knots = m->options.trains ? knots_to_train(&m->options) : m->options.knots;
  clb_text path = {0}, folder = {0};
  clb_status s = CLB_OK;
  clb_model_file(&path, asked);
  clb_models_folder(&folder);
  if (path.failed || folder.failed)
    s = clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  else if (clb_is_model_name(asked) && access(path.s, F_OK))
    s = clb_fail(&m->ctx->error, CLB_ERROR_ARGUMENT,
                 "%s: No such file, and no model in %s; `clebsch models` lists names, and `clebsch "
                 "fetch` gets a model",
                 asked, folder.n ? folder.s : "$CLB_MODELS_DIR, which is not set");
  else
    s = knots ? clb_model_load(m, path.s, knots > 0 ? knots : 0)
              : clb_model_choose_knots(m, path.s);
  clb_text_free(&path);
  clb_text_free(&folder);
  return s;
}

clb_status clb_model_open_sized(clb_context *ctx, const char *path,
                                const clb_model_options *options, clb_model **model, size_t size) {
  clb_status s = clb_context_check(ctx, __func__);
  clb_model_options o;
  if (model) *model = NULL;
  if (s) return s;
  if (!path || !model)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_model_open: %s is NULL",
                    path ? "model" : "path");
  s = clb_take_struct(&ctx->error, "clb_model_options", &o, sizeof o, options, size);
  if (s || (s = check_options(ctx, &o))) return s;
  clb_model *m = *model = calloc(1, sizeof *m);
  if (!m) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_model_open: no memory");
  *m = (clb_model){
      .ctx = clb_context_hold(ctx), .type = o.dtype, .sum_type = clb_sum_type(ctx), .options = o};
  s = load(m, path);
  if (!s) s = clb_model_create_dispersion(m);
  if (s) clb_model_destroy(model);
  return s;
}
