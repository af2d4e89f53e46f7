"""Rows of a measurement, for lammps_gpus.py and training_gpus.py: what was measured is written at once, what was measured
before is not measured again, and of what fails the reason is printed and the others go on."""
import json


class Rows:
    def __init__(self, path):
        self.path, self.rows, self.known, self.failed = path, [], {}, []

    def add(self, title, key, measure, shown, **more):
        """A row of `more` and the dict that measure() returns, once for a key. Printed: the title and shown(dict)."""
        if key not in self.known:
            try:
                self.known[key] = measure()
            except SystemExit as e:  # with its words
                self.known[key] = None
                print(f"{title}: failed: {e}", flush=True)
        if self.known[key] is None:
            self.failed.append(title)
            return
        self.rows.append({**more, **self.known[key]})
        print(f"{title}: {shown(self.known[key])}", flush=True)
        if self.path:
            self.path.write_text(json.dumps({"results": self.rows}, indent=1) + "\n")

    def end(self):
        if self.failed:
            raise SystemExit("failed: " + "; ".join(self.failed))
