"""A tool as a brick: what it is called with is the item and the settings of the step, what it answers is the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict

from toolcrib.core.context import NO_CONTEXT
from toolcrib.core.schema import named_arguments
from toolcrib.core.tool import Tool
from toolcrib.stacking.brick import AnyBrick, Brick, BrickConfig, StepContext
from toolcrib.stacking.items import Item, Page, Request
from toolcrib.stacking.shapes import arguments_from, items_in, links_in, shape_of


class ToolBrick(Brick[Any, Any]):
    """Runs one tool. Arguments that its schema does not speak of are left out, if the schema takes no others."""

    class Config(BrickConfig):
        """Further arguments of the tool, the same for every item."""

        model_config = ConfigDict(frozen=True, extra="allow")

    tool: ClassVar[Tool]

    @property
    def execution_mode(self) -> str:
        return self.spec.execution_mode  # the code is elsewhere: there is nothing here to check the entry against

    async def process(self, item: Item, context: StepContext, /) -> Sequence[Item]:
        given = {**self.config.model_dump(), **arguments_from(item)}
        taken = named_arguments(self.spec.parameters) if self.spec.parameters.get("properties") else None
        known = given if taken is None else {name: value for name, value in given.items() if name in taken}
        answer = await self.tool.execute(known, context=NO_CONTEXT)
        request = item.request if isinstance(item, Page) else item
        if isinstance(request, Request):
            for link in links_in(answer):
                context.follow(request.follow(link, item.url if isinstance(item, Page) else ""))
        return list(items_in(self.gives, answer, item, self.spec.name))


def tool_brick(tool: Tool) -> type[AnyBrick]:
    """The brick that runs ``tool``. What it takes and gives stands in its ``metadata``, or follows from its type."""
    takes, gives = shape_of(tool.spec)
    return type("ToolBrick", (ToolBrick,), {"spec": tool.spec, "tool": tool, "takes": takes, "gives": gives})
