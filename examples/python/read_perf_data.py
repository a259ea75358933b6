# read_perf_data.py - the samples of a perf.data file: event, thread, time, address; and what each command's share of them is.
#
#     read_perf_data.py [FILE]
import sys
from collections import Counter

import perfring

try:
    with perfring.open(sys.argv[1] if len(sys.argv) > 1 else "perf.data") as file:
        shares = Counter()
        for sample in file.samples(["event", "comm", "tid", "time", "ip"]):
            print(f"{sample.time / 1e9:.9f} {sample.comm} {sample.tid} {sample.event} {sample.ip:#x}")
            shares[sample.comm] += 1
except OSError as error:
    sys.exit(f"read_perf_data: {error.filename}: {error.strerror}")
for comm, count in shares.most_common():
    print(f"{100 * count / sum(shares.values()):6.2f} %  {comm}")
