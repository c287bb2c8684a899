#!/usr/bin/python3
"""tools/compare_reports.py on made-up reports: ratios, what only one has, and files that are no reports.

usage: compare_reports_test.py COMPARE_REPORTS
"""
import copy
import json
import os
import subprocess
import sys
import tempfile

REPORT = {
    "format": 1, "commit": "abc", "version": "0.1.0", "date": "2026-01-01T00:00:00Z", "seconds": 300,
    "device": {"name": "GPU one", "driver": "driver 1"}, "check": {"passed": 5000, "failed": 0}, "failures": [],
    "parts": {
        "model-1b-q8_0": {"results": [{"test": "pp512", "tps_mean": 1000.0}, {"test": "tg64", "tps_mean": 100.0}]},
        "peer-kjv": [{"n_prompt": 64, "n_gen": 0, "avg_ts": 50.0}, {"n_prompt": 0, "n_gen": 64, "avg_ts": 5.0}],
        "kernels": {"kernels": [{"op": "linear", "kernel": "vector", "type": "q8_0", "shape": "8b: 1 row", "us": 10.0}]},
    },
}


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        def run(a, b):
            paths = []
            for name, report in (("a.json", a), ("b.json", b)):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w") as file:
                    file.write(report if isinstance(report, str) else json.dumps(report))
            return subprocess.run(["/usr/bin/python3", program, *paths], capture_output=True, text=True, check=False)

        faster = copy.deepcopy(REPORT)
        faster["device"]["name"] = "GPU two"
        faster["parts"]["model-1b-q8_0"]["results"] = [{"test": "pp512", "tps_mean": 1500.0}, {"test": "tg64 @ d4096", "tps_mean": 90.0}]
        faster["parts"]["kernels"]["kernels"][0]["us"] = 4.0
        faster["failures"] = ["isa.json: took longer than 60 s"]
        done = run(REPORT, faster)
        assert done.returncode == 0, done
        for text in ("| A | GPU one |", "| B | GPU two |", "| model-1b-q8_0 | pp512 | 1000.0 | 1500.0 | 1.50 |", "| llama.cpp, kjv | tg64 | 5.0 | 5.0 | 1.00 |",
                     "| linear/vector | q8_0 | 8b: 1 row | 10.00 | 4.00 | 0.40 |", "Only in A: model-1b-q8_0 tg64", "Only in B: model-1b-q8_0 tg64 @ d4096",
                     "B could not: isa.json: took longer than 60 s"):
            assert text in done.stdout, (text, done.stdout)

        def refused(report, *texts):
            done = run(REPORT, report)
            lines = done.stderr.splitlines()
            assert done.returncode == 1 and len(lines) == 1 and all(text in lines[0] for text in texts), (texts, done)

        refused("{", "b.json")
        refused("[]", "b.json", "no report")
        refused({**REPORT, "format": 2}, "b.json", "version 2", "reads version 1")
        refused({key: value for key, value in REPORT.items() if key != "parts"}, "b.json", "'parts'")
        refused({**REPORT, "parts": {"model-x": {"results": [{"test": "pp1"}]}}}, "b.json", "tps_mean")
        assert subprocess.run(["/usr/bin/python3", program], capture_output=True, check=False).returncode == 2
    print("compare_reports: all as it should be")


main()
