"""`graph-to-tile`: each outlined kernel of graph ops becomes a `tile.kernel`, tiled for the target."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.graph.constants import ConstantOp
from ..dialects.graph.contract import Conv2DOp, Depthwise2DOp, GroupConv2DOp, MatMulOp
from ..dialects.graph.op import GraphOp, dtype_name, shape
from ..dialects.graph.packed import PackedMatMulOp
from ..dialects.graph.pool import Window2DOp
from ..dialects.graph.properties import ints
from ..dialects.graph.recurrence import RecurrenceOp
from ..dialects.loops import Window
from .context import PassError, compile_context
from .location import leaves
from .tiling.body import Machine, NotTileable, Region
from .tiling.contraction import tile_product
from .tiling.depthwise import tile_depthwise
from .tiling.geometry import Image
from .tiling.grouped import tile_groups
from .tiling.image import tile_convolution
from .tiling.movement import tile_movement
from .tiling.operands import product_of
from .tiling.product import Product
from .tiling.recurrent import tile_recurrence
from .tiling.vector import tile_vector
from .tiling.whole_image import is_whole_image, tile_whole_image
from .tiling.window import tile_window


@dataclass(frozen=True)
class GraphToTile(ModulePass):
    """Writes each kernel function as loops over on-chip tiles.

    `cores` uses fewer cores than the target has; `variant` takes another tiling than the best.

        func.func private @k0(%x: tensor<1000x64xf16>) -> tensor<1000x64xf16> {
          %y = graph.relu %x : (tensor<1000x64xf16>) -> tensor<1000x64xf16>
          func.return %y : tensor<1000x64xf16>
        }

    becomes

        tile.kernel @k0(%x: !tile.buffer<64000xf16, gm>, %y: !tile.buffer<64000xf16, gm>) {
          tile.for %m = 0 to "clamp(64000 - 32000*core, 32000)" step 8000 {
            %t = tile.alloc : !tile.buffer<8000xf16, ub, 2>
            tile.load %t["0" : 1], %x["i0 + 32000*core" : 1] extents ["8000"] at (%m)
            %u = tile.alloc : !tile.buffer<8000xf16, ub, 2>
            tile.map %u["0" : 1], %t["0" : 1] extents ["8000"] fields {fn = "relu"}
            tile.store %y["i0 + 32000*core" : 1], %u["0" : 1] extents ["8000"] at (%m)
          }
        }
    """

    name = "graph-to-tile"
    cores: int = 0
    variant: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = compile_context(ctx).need_target()
        machine = Machine(target, min(self.cores or target.cores, target.cores), self.variant)
        problems: list[PassError] = []
        for function in [
            f
            for f in op.ops
            if isinstance(f, FuncOp) and f.sym_visibility is not None and f.sym_visibility.data == "private"
        ]:
            region = region_of(function)
            try:
                kernel = tile_kernel(function.sym_name.data, region, machine)
            except NotTileable as error:
                problems.append(PassError(str(error), region.ops[0], error.KIND, error.REMEDY))
                continue
            locate(kernel, region)
            block = function.parent_block()
            assert block is not None
            block.insert_op_before(kernel, function)
            function.detach()
            function.erase()
        if problems:
            raise PassError("; ".join(map(str, problems)), parts=problems)


def region_of(function: FuncOp) -> Region:
    """The kernel in a function of graph ops; views before and after its other ops are told apart."""
    block = function.body.block
    ops = [op for op in block.ops if isinstance(op, GraphOp) and not isinstance(op, ConstantOp)]
    assert block.last_op is not None
    results = tuple(block.last_op.operands)
    inner = [n for n, op in enumerate(ops) if op.structure() != "view"]
    if not inner:
        return Region(tuple(block.args), tuple(ops), results)
    views, outward = ops[: inner[0]], ops[inner[-1] + 1 :]
    if outward:
        results = tuple(outward[0].operands)
    return Region(tuple(block.args), tuple(ops[inner[0] : inner[-1] + 1]), results, tuple(views), tuple(outward))


def tile_kernel(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The tile form of a kernel: its first op that is no elementwise one decides which. Raises `NotTileable`."""
    anchor = region.ops[0]
    for kind, form in _FORMS.items():
        if isinstance(anchor, kind):
            return form(name, region, machine)
    if anchor.structure() == "view":
        return tile_movement(name, region, machine)
    return tile_vector(name, region, machine)


def _matmul(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    return tile_product(name, region, product_of(region), machine)


def image_of(op: GraphOp) -> Image:
    """Geometry of a channels-last window op."""
    batch, h, w, channels = shape(op.operands[0])
    _, oh, ow, _ = shape(op.results[0])
    kernel, strides, pads, dilations = (
        ints(op.properties, name) for name in ("kernel", "strides", "pads", "dilations")
    )
    return Image(
        batch,
        h,
        w,
        channels,
        oh,
        ow,
        (kernel[0], kernel[1]),
        (strides[0], strides[1]),
        (dilations[0], dilations[1]),
        (pads[0], pads[1]),
        dtype_name(op.operands[0]),
    )


def _convolution(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    op = region.ops[0]
    image, columns = image_of(op), shape(op.results[0])[3]
    if image.taps == 1 and image.strides == (1, 1) and not any(ints(op.properties, "pads")) and image.c0 == 16:
        # A 1×1 convolution is a product of the pixels; k is the channel.
        product = Product.plain(image.batch * image.h * image.w, columns, image.channels, image.dtype)
        return tile_product(name, region, product, machine)
    return tile_convolution(name, region, image, columns, machine)


def _depthwise(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    return tile_depthwise(name, region, image_of(region.ops[0]), machine)


def _window(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    image, kernel = image_of(region.ops[0]), region.ops[0].loops().kernel
    if isinstance(kernel, Window) and is_whole_image(image, kernel, machine.target):
        return tile_whole_image(name, region, image, machine)
    return tile_window(name, region, image, machine)


_FORMS: dict[type[GraphOp], Callable[[str, Region, Machine], tile.KernelOp]] = {
    MatMulOp: _matmul,
    PackedMatMulOp: _matmul,
    Conv2DOp: _convolution,
    Depthwise2DOp: _depthwise,
    GroupConv2DOp: tile_groups,
    Window2DOp: _window,
    RecurrenceOp: tile_recurrence,
}


def locate(kernel: tile.KernelOp, region: Region) -> None:
    """Every op of the kernel that has no location of its own stands for the kernel's first op."""
    for op in kernel.walk():
        if not leaves(op.location):
            op.location = region.ops[0].location
