/* tools/serve/mdi_session.h - the engine's side of MDI, the MolSSI Driver Interface. */
#ifndef CLB_TOOLS_SERVE_MDI_SESSION_H
#define CLB_TOOLS_SERVE_MDI_SESSION_H

#include "tools/serve/serve_engine.h"

/* Connects as the options of MDI say, and does what the driver asks for until it says EXIT. false:
   after a message on standard error. */
bool mdi_serve(const char *options, serve_engine *e);

#endif
