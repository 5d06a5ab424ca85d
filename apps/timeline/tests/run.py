#!/usr/bin/env python3
"""End-to-end tests of the application against a real Sava.

    apps/timeline/tests/run.py --server PATH_TO_sava --app PATH_TO_sava_timeline
                               [--only NAME] [--seed S] [--no-mariadb] [--pictures FOLDER]

The last line is `N passed, N failed` (`, N skipped` follows when there are any).
"""

import argparse
import importlib
import os
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402

MODULES = ["page_tests", "cache_tests", "safety_tests", "history_tests", "program_tests", "browser_tests"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--no-mariadb", action="store_true")
    parser.add_argument("--pictures", help="where the browser test puts pictures of the pages")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended then, too
    options.server = os.path.abspath(options.server)
    options.app = os.path.abspath(options.app)
    passed = failed = skipped = 0
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, test in list(vars(module).items()):
            full = f"{module_name}.{name}"
            if not name.startswith("test_") or options.only not in full:
                continue
            start = time.monotonic()
            try:
                test(options)
                result, passed = "ok", passed + 1
            except harness.Skip as reason:
                result, skipped = f"skipped: {reason}", skipped + 1
            except Exception:  # noqa: BLE001 - a test may fail in any way
                traceback.print_exc()
                result, failed = f"FAILED (seed {options.seed})", failed + 1
            print(f"{full:60} {time.monotonic() - start:6.1f} s  {result}", flush=True)
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
