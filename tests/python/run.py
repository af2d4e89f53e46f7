#!/usr/bin/env python3
"""Runs tests/python/test_*.py in the environment that ci/python.sh makes ($CLB_TEST_PYTHON), and
prints cmocka's lines, which ci/test.sh counts:  run.py [test_ase ...].  `run.py test_torch` runs by the
interpreter of ci/torch.sh ($CLB_TEST_TORCH)."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Result(unittest.TestResult):
    def addSuccess(self, test):
        print("[       OK ]", test._testMethodName)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"{reason}\n[  SKIPPED ] {test._testMethodName}")

    def addError(self, test, err):
        super().addError(test, err)
        print(f"{self.errors[-1][1]}\n[  FAILED  ] {test._testMethodName}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"{self.failures[-1][1]}\n[  FAILED  ] {test._testMethodName}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print(f"{(self.errors + self.failures)[-1][1]}\n[  FAILED  ] {test._testMethodName}")


def main():
    kind = "torch" if sys.argv[1:] == ["test_torch"] else "python"
    python = os.environ.get(f"CLB_TEST_{kind.upper()}")
    if not python:
        print(f"CLB_TEST_{kind.upper()} is not set: ci/{kind}.sh makes an environment\n[  SKIPPED ] {kind}")
        return 77
    if not sys.flags.no_user_site:
        os.execv(python, [python, "-sB", __file__, *sys.argv[1:]])
    sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python")]
    names = sys.argv[1:] or sorted({path.stem for path in HERE.glob("test_*.py")} - {"test_torch"})
    result = unittest.defaultTestLoader.loadTestsFromNames(names).run(Result())
    return not (result.testsRun and result.wasSuccessful())


if __name__ == "__main__":
    sys.exit(main())
