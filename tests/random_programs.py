"""Random programs for the tests of encoding, generator, timing and checker."""

import struct
from random import Random

from stepwell.runtime import isa
from stepwell.runtime.encoding import Program, Row, row
from stepwell.runtime.expr import LEVELS, MAX_SLOTS, RINGS, Expr, Ring, Term, merge
from stepwell.runtime.numerics.functions import FUNCTIONS

SCALAR_ROWS = ("mov", "min", "max", "div", "mod", "less")
PLAIN_ROWS = tuple(i.name for i in isa.INSTRUCTIONS if i.name not in ("loop", "end", "read", *SCALAR_ROWS))
QUEUES = [int(engine) for engine in isa.Engine if engine is not isa.Engine.SCALAR]


def any_program(random: Random, rows: int = 12, most_trips: int = 3) -> Program:
    """Rows of every kind with every kind of expression: well formed, but with no meaning. Loops stay short."""
    body: list[Row] = []
    depth = 0
    while len(body) < rows or depth:
        choice = random.random()
        if depth and (choice < 0.2 or len(body) >= rows):
            body.append(row("end"))
            depth -= 1
        elif depth < LEVELS and choice < 0.4:
            body.append(_loop(random, depth, most_trips))
            depth += 1
        elif choice < 0.55:
            body.append(_scalar(random, depth))
        else:
            body.append(_plain(random, random.choice(PLAIN_ROWS), depth))
    return tuple(body)


def any_expression(random: Random, depth: int) -> Expr:
    """Constant in half of the cases; else up to three terms, a clamp and a ring. Registers stay small, r0 and r1
    only are read."""
    base = random.choice([0, 1, random.randint(-40, 40), random.randint(-(1 << 40), 1 << 40)])
    if random.random() < 0.5:
        return Expr(base)
    names = ["core", "r0", "r1", "r27", *(f"i{level}" for level in range(depth))]
    terms = tuple(
        Term(random.randint(-9, 9), random.choice(names), random.choice(["", *names]))
        for _ in range(random.randint(0, 3))
    )
    clamp = random.choice([None, random.randint(0, 50)])
    slots = random.randint(1, MAX_SLOTS)
    ring = Ring(random.randrange(RINGS), random.randint(-9, 9), slots, random.randint(-4096, 4096))
    return Expr(base, merge(terms), clamp, random.choice([None, ring]))


def _loop(random: Random, depth: int, most_trips: int) -> Row:
    count = any_expression(random, depth)
    count = Expr(count.base, count.terms, random.randint(0, most_trips), None)
    step, add = random.choice([(1, 0), (2, 1), (1, -1)])
    return row("loop", count=count, step=step, add=add, ring=random.randrange(RINGS))


def _scalar(random: Random, depth: int) -> Row:
    """Writes r0 or r1, bounded so that nested products stay within 64 bits."""
    name = random.choice(SCALAR_ROWS)
    small = Expr(random.randint(-20, 20), (Term(1, random.choice(["core", *(f"i{level}" for level in range(depth))])),))
    if name == "mov":
        return row("mov", rd=random.randrange(2), value=small)
    second = Expr(random.randint(1, 9)) if name in ("div", "mod") else any_expression(random, 0)
    first = Expr(random.randint(-99, 99), (Term(1, "r0"),), random.choice([None, 60]))
    if name == "max":
        second = Expr(random.randint(-9, 9))
    return row(name, random.randrange(4), rd=random.randrange(2), a=first, b=Expr(second.base % 100 + 1))


def _plain(random: Random, name: str, depth: int) -> Row:
    fields = tuple(_field(random, spec, depth) for spec in isa.BY_NAME[name].fields)
    return Row(name, fields, random.choice([0, 0, random.randrange(1 << 32)]))


def _field(random: Random, spec: isa.Field, depth: int) -> Expr:
    if spec.default is not None and random.random() < 0.3:
        return Expr(spec.default)
    if spec.kind == "engine":
        return Expr(random.choice(QUEUES))
    if spec.kind in isa.NAMED_VALUES:
        return Expr(random.choice(list(isa.NAMED_VALUES[spec.kind].values())))
    if spec.kind == "fn":
        return Expr(random.randrange(len(FUNCTIONS)))
    if spec.kind == "float":
        return Expr(struct.unpack("<I", struct.pack("<f", random.uniform(-1e4, 1e4)))[0])
    if spec.kind == "register":
        return Expr(random.randrange(32))
    return any_expression(random, depth)


LOAD, FEED, CUBE, DRAIN, VECTOR, STORE = (
    int(isa.Engine[name]) for name in ("LOAD", "FEED", "CUBE", "DRAIN", "VECTOR", "STORE")
)


def timed_program(random: Random, cores: int = 1, channels: int = 4) -> Program:
    """A program that runs to its end in every interleaving: loops around producers and consumers of random engines,
    bounded by tokens that flow back. Its addresses mean nothing. With several cores each iteration of the outer
    loop awaits those before it on all of them; a few of these deadlock, where the cores' loops differ."""
    before: list[Row] = []
    after: list[Row] = []
    places: list[list[list[Row]]] = [[], [], []]
    for number in range(channels):
        src, dst = random.sample(QUEUES, 2)
        slots = random.randint(1, 3)
        places[random.randrange(3)].append(_channel(random, src, dst, number % isa.TOKEN_IDS))
        before.append(row("grant", src=dst, dst=src, id=number % isa.TOKEN_IDS, n=slots))
        after += [row("wait", src=dst, dst=src, id=number % isa.TOKEN_IDS)] * slots
    body: list[Row] = []
    if cores > 1:
        queue = random.choice(QUEUES)
        body = [
            row("await", engine=random.choice(QUEUES), counter=core, value=Expr(0, (Term(1, "i0"),)))
            for core in range(cores)
        ]
        body += [*_work(random, queue), row("signal", engine=queue, counter=Expr(0, (Term(1, "core"),)))]
    for depth, parts in enumerate(places):
        body = [
            _counted(random, 2 - depth, cores == 1 or random.random() < 0.1),
            *_merge(random, [*parts, body]),
            row("end"),
        ]
    return (*before, *body, *after)


def _counted(random: Random, level: int, varies: bool) -> Row:
    count = Expr(random.randint(1, 6), (Term(random.randint(-1, 2), "core"),) if varies else ())
    if varies and level and random.random() < 0.3:
        count = Expr(count.base, (Term(random.randint(-1, 1), "i0"),))
    return row("loop", count=count, step=random.randint(1, 2), ring=level)


def _merge(random: Random, parts: list[list[Row]]) -> list[Row]:
    """Interleaves sequences of rows at random; a loop with all it contains stays in one piece."""
    units = [_units(part) for part in parts]
    merged: list[Row] = []
    while any(units):
        chosen = random.choice([unit for unit in units if unit])
        merged += chosen.pop(0)
    return merged


def _units(rows: list[Row]) -> list[list[Row]]:
    units: list[list[Row]] = []
    depth = 0
    for entry in rows:
        if depth:
            units[-1].append(entry)
        else:
            units.append([entry])
        depth += {"loop": 1, "end": -1}.get(entry.name, 0)
    return units


def _channel(random: Random, src: int, dst: int, token: int) -> list[Row]:
    produce = [row("wait", src=dst, dst=src, id=token), *_work(random, src), row("set", src=src, dst=dst, id=token)]
    consume = [row("wait", src=src, dst=dst, id=token), *_work(random, dst), row("set", src=dst, dst=src, id=token)]
    return produce + consume


def _work(random: Random, engine: int) -> list[Row]:
    return [timed_row(random, engine) for _ in range(random.randint(0, 3))]


def timed_row(random: Random, engine: int) -> Row:
    """An instruction of an engine with extents that vary, and vanish now and then."""

    def extent(most: int) -> Expr:
        if random.random() < 0.5:
            return Expr(random.randint(1, most))
        return Expr(
            random.randint(-most // 4, most),
            (Term(random.randint(-9, 9), random.choice(["i0", "core"])),),
            random.choice([None, most]),
        )

    m, n = extent(90), extent(200)
    if engine == LOAD:
        return row("load", dst=0, space=1, src=0, n2=extent(3), n3=m, n4=n, esize=random.choice([1, 2, 4]), s4=2)
    if engine == FEED:
        return row("feed_a", dst=0, src=0, m=m, k=n, ld=256, pitch=512, dtype=random.choice([0, 2, 3]))
    if engine == CUBE:
        return row(
            "mma", dst=0, a=0, b=0, m=m, n=n, k=extent(100), lda=256, ldb=256, ldc=256, dtype=random.choice([0, 2, 3])
        )
    if engine == DRAIN:
        return row(
            "drain",
            dst=0,
            space=random.choice([0, 1, 5]),
            src=0,
            m=m,
            n=n,
            ldc=256,
            pitch=1024,
            dtype=random.choice([0, 2]),
        )
    if engine == VECTOR:
        return row(
            "vmap",
            fn=random.randrange(len(FUNCTIONS)),
            dst=0,
            a=0,
            n1=m,
            n2=n,
            d1=random.choice([0, 400]),
            d2=2,
            a2=2,
            td=0,
            ta=random.choice([0, 2]),
        )
    return row("store", dst=0, src=0, space=5, n3=m, n4=n, esize=random.choice([1, 2, 4]), d4=2)
