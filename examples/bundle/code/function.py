"""The code of the bundle: the service runs it in a process of its own."""

from collections import Counter


class AgentSpaceV1Tool:
    def __init__(self, tool_id, tool_data):
        self.tool_id, self.tool_data = tool_id, tool_data

    def execute(self, input_data):
        words = input_data["text"].lower().split()
        return {"words": len(words), "frequent": dict(Counter(words).most_common(input_data.get("most", 10)))}
