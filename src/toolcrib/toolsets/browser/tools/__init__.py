"""The browser's tools, one file a category; importing them adds them to the list."""

from toolcrib.toolsets.browser.tools import (  # noqa: F401
    extraction,
    fields,
    form,
    interaction,
    navigation,
    network,
    search_captcha,
    session_tools,
    system,
    utility,
    visual,
)
