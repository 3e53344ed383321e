"""FlyBrowser's sample tools, as its design writes them."""

from typing import Any

from toolcrib.dialects.flybrowser import (
    BaseTool,
    ModelCapability,
    SafetyLevel,
    ToolCategory,
    ToolMetadata,
    ToolParameter,
    ToolResult,
)


class ClickTool(BaseTool):
    """Tool for clicking elements on the page."""

    metadata = ToolMetadata(
        name="click",
        description="Click on an element identified by selector",
        category=ToolCategory.INTERACTION,
        safety_level=SafetyLevel.LOW_RISK,
        parameters=[
            ToolParameter(
                name="selector",
                type="string",
                description="CSS selector for the element to click",
                required=True,
            ),
            ToolParameter(
                name="timeout",
                type="number",
                description="Timeout in milliseconds",
                default=5000,
            ),
        ],
        returns_description="Confirmation of click action",
        examples=[
            'click(selector="#submit-btn")',
            'click(selector=".nav-link", timeout=10000)',
        ],
        requires_page=True,
        timeout_seconds=30.0,
    )

    async def execute(self, selector: str, timeout: int = 5000, **kwargs: Any) -> ToolResult:
        """Execute the click action."""
        try:
            element = await self.page.wait_for_selector(selector, timeout=timeout)
            await element.click()

            return ToolResult.success_result(
                {
                    "clicked": selector,
                    "success": True,
                }
            )
        except Exception as e:
            return ToolResult.failure_result(f"Failed to click {selector}: {e!s}")


class ScreenshotTool(BaseTool):
    metadata = ToolMetadata(
        name="screenshot",
        description="Capture screenshot for visual analysis",
        # This tool requires vision capability
        required_capabilities=[ModelCapability.VISION],
        optimal_capabilities=[ModelCapability.VISION],
    )

    async def execute(self, **kwargs: Any) -> ToolResult:
        return ToolResult.success_result("png")
