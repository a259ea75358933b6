"""golden.py - the conformance suite as adapters see it: its vectors, comparing, and the lines that an adapter prints.

An adapter prints, for each vector, `right NAME`, `wrong NAME: why`, or `silent NAME` where its decoder says nothing that
could be compared.
"""
import json
import os
import sys


class Vector:
    def __init__(self, corpus, name):
        self.name = name
        self.path = os.path.join(corpus, name + ".data")
        with open(os.path.join(corpus, name + ".json"), encoding="ascii") as file:
            self.golden = json.load(file)

    @property
    def records(self):
        return self.golden["records"]

    def samples(self):
        return [record for record in self.records if record["type"] == 9]


def vectors(arguments):
    """CORPUS [STEP]: all vectors, or each STEP-th pair of byte orders."""
    corpus, step = arguments[0], int(arguments[1]) if len(arguments) > 1 else 1
    with open(os.path.join(corpus, "MANIFEST"), encoding="ascii") as manifest:
        names = [line.split()[2][:-5] for line in manifest if line.endswith(".json\n")]
    return [Vector(corpus, name) for i, name in enumerate(names) if i // 2 % step == 0]


def canonical(value):
    return json.dumps(value, sort_keys=True)


def word(text):
    """A number of the JSON, whether it is one or "0x..."."""
    return text if isinstance(text, int) else int(text, 16)


def difference(got, want, in_order=False):
    """What is different between two lists of values, in any order unless it is said: None, or a line."""
    got, want = [canonical(value) for value in got], [canonical(value) for value in want]
    if not in_order:
        got, want = sorted(got), sorted(want)
    if got == want:
        return None
    if len(got) != len(want):
        line = f"{len(got)} instead of {len(want)}"
    else:
        line = f"{len(got)}"
    for mine, right in zip(got, want):
        if mine != right:
            return f"{line}; {mine} instead of {right}"
    return line


def tell(vector, why):
    if why is None:
        print("right", vector.name)
    else:
        print(f"wrong {vector.name}: {' '.join(why.split())[:400]}")


def run(judge, arguments):
    """judge(vector): None when right, "" when silent, else why it is wrong."""
    for vector in vectors(arguments):
        why = judge(vector)
        if why == "":
            print("silent", vector.name)
        else:
            tell(vector, why)
    sys.stdout.flush()
