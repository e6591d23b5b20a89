"""What a plan does, in which order."""

from stepwell.runtime.steps import Branch, Copy, Launch, Leaf, Repeat, Step, dearest


def launch(kernel: int) -> Launch:
    return Launch(kernel, (), ())


def cost(leaf: Leaf) -> float:
    """Of a launch its number, of a copy 10."""
    return float(sum(leaf)) if isinstance(leaf, range) else 10.0


def test_the_dearest_way_takes_a_branch_by_what_is_in_it() -> None:
    inner = Branch(0, (Copy(0, 1),), (launch(2),))  # a copy against launch 2
    steps: list[Step] = [launch(0), Branch(0, (launch(1), inner), (launch(3), launch(4))), launch(5)]
    assert dearest(steps, cost) == [range(1), range(1, 2), Copy(0, 1), range(5, 6)]
    dearer: list[Step] = [launch(0), Branch(0, (launch(1), inner), (launch(3), launch(4), Copy(2, 3)))]
    assert dearest(dearer, cost) == [range(1), range(3, 5), Copy(2, 3)]


def test_the_dearest_way_goes_round_a_loop_once() -> None:
    body = (launch(1), Branch(0, (), (launch(2),)))
    steps: list[Step] = [launch(0), Repeat(None, None, 0, 1, 2, body), launch(3)]
    assert dearest(steps, cost) == [range(1), range(1, 2), range(2, 3), range(3, 4)]
