"""The example in a pass's docstring is what the pass does: before and after, as in docs/passes.md."""

import re
from inspect import cleandoc

import onnx
import pytest
from chips import chip
from pages import blocks
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func

from stepwell.dialects.graph import Graph
from stepwell.dialects.tile import Tile
from stepwell.driver import pipeline
from stepwell.driver.docs import fenced
from stepwell.driver.opt import LocatingParser
from stepwell.frontend.onnx import import_onnx
from stepwell.passes.context import CompileContext

ON_CPU = '<ir_version: 8, opset_import: ["" : 17]> g (double[4] x) => (double[4] y) { a = Add(x, x) y = Exp(a) }'
"""Its nodes are the parts in the example of host-parts."""
PASSES = sorted({name for stage in (pipeline.GRAPH, pipeline.TILE) for name, _ in stage.steps})
_OP = re.compile(r"^(%\w+) = \S+ (.*?)(?: \{.*\})? : \((.*?)\) -> (.*)$", re.MULTILINE)


def whole(text: str) -> str:
    """Ops alone become a function that takes what they use and returns the last result."""
    if "func.func" in text or "tile.kernel" in text:
        return text
    ops, arguments = _OP.findall(text), dict[str, str]()
    defined = re.findall(r"^(%\w+) =", text, re.MULTILINE)
    for _, operands, types, _ in ops:
        for name, kind in zip(re.findall(r"%\w+", operands), re.findall(r"tensor<[^>]*>", types), strict=True):
            if name not in defined:
                arguments.setdefault(name, kind)
    signature = ", ".join(f"{name}: {kind}" for name, kind in arguments.items())
    last, *_, kind = ops[-1]
    return f"func.func @main({signature}) -> {kind} {{\n{text}\nfunc.return {last} : {kind}\n}}"


def parse(context: CompileContext, text: str) -> ModuleOp:
    module = LocatingParser(context, whole(text), "example", 0).parse_module()
    module.verify()
    return module


@pytest.mark.parametrize("name", PASSES)
def test_the_example_of_a_pass_is_what_it_does(name: str) -> None:
    folder = next(stage.folder for stage in pipeline.STAGES if name in [step for step, _ in stage.steps])
    kind = pipeline.load_pass(name, folder)
    before, after = (block.text for block in blocks(fenced(cleandoc(kind.__doc__ or ""))))
    context = CompileContext()
    context.target = chip("edge")
    context.weights.update(import_onnx(onnx.parser.parse_model(ON_CPU), host=True)[1])
    for dialect in (Builtin, Func, Graph, Tile):
        context.load_dialect(dialect)
    module, wanted = parse(context, before), parse(context, after)
    assert not module.is_structurally_equivalent(wanted), "an example shows a change"
    kind().apply(context, module)
    assert module.is_structurally_equivalent(wanted), f"{module}\nthe docstring says\n{wanted}"
