# python_names.py - the frames of each sample with their names, a line each as `perf script -F ip,sym` shows them, an empty line after
# each sample.
#
#     python_names.py FILE
import sys

import perfring

sys.stdout.reconfigure(errors="surrogateescape")
with perfring.open(sys.argv[1]) as file, perfring.Names() as names:
    for item in file:
        frames = names.frames(item)
        if item.kind == "SAMPLE":
            for frame in frames:
                print(f"{frame.address:x} {frame.name or '[unknown]'}")
            print()
