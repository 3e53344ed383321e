"""How much harm a tool can do, and what it asks of the model that calls it."""

from __future__ import annotations

from enum import Enum, StrEnum


class SafetyLevel(str, Enum):
    """Ordered by rank, not by spelling: ``SAFE < LOW_RISK < MEDIUM_RISK < HIGH_RISK < DANGEROUS``."""

    SAFE = "safe"
    LOW_RISK = "low_risk"
    MEDIUM_RISK = "medium"
    HIGH_RISK = "high"
    DANGEROUS = "dangerous"

    rank: int

    def __lt__(self, other: str) -> bool:
        return self.rank < SafetyLevel(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= SafetyLevel(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > SafetyLevel(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= SafetyLevel(other).rank

    def __str__(self) -> str:
        return str(self.value)


for _rank, _level in enumerate(SafetyLevel):
    _level.rank = _rank


class ModelCapability(StrEnum):
    """What a model can do; a tool says which of these it needs, and which it is best with."""

    TEXT_GENERATION = "text_generation"
    VISION = "vision"
    MULTI_IMAGE_VISION = "multi_image_vision"
    STREAMING = "streaming"
    TOOL_CALLING = "tool_calling"
    STRUCTURED_OUTPUT = "structured_output"
    EMBEDDINGS = "embeddings"
    CODE_EXECUTION = "code_execution"
    EXTENDED_THINKING = "extended_thinking"
