"""Stacking tools: bricks with a common shape, pipelines made of them, and a planner that finds the stack."""

from __future__ import annotations

from toolcrib.stacking.brick import BatchBrick, Brick, BrickConfig, Secrets, StepContext
from toolcrib.stacking.checking import Joint, PipelineReport
from toolcrib.stacking.definition import PipelineDefinition, StepDefinition, read_definition
from toolcrib.stacking.index import StackingIndex
from toolcrib.stacking.installed import InstalledBricks, lacking
from toolcrib.stacking.items import Item, Page, Record, Request, Stored
from toolcrib.stacking.pipeline import Pipeline, SpecsOf
from toolcrib.stacking.planner import Miss, Plan, Planner, Stack, plan
from toolcrib.stacking.politeness import Crawler, Robots
from toolcrib.stacking.reports import FailedRequest, Progress, RunReport, Selecting, UnmatchedSelector
from toolcrib.stacking.step import StepStatistics
from toolcrib.stacking.tool_bricks import tool_brick

__all__ = [
    "BatchBrick",
    "Brick",
    "BrickConfig",
    "Crawler",
    "FailedRequest",
    "InstalledBricks",
    "Item",
    "Joint",
    "Miss",
    "Page",
    "Pipeline",
    "PipelineDefinition",
    "PipelineReport",
    "Plan",
    "Planner",
    "Progress",
    "Record",
    "Request",
    "Robots",
    "RunReport",
    "Secrets",
    "Selecting",
    "SpecsOf",
    "Stack",
    "StackingIndex",
    "StepContext",
    "StepDefinition",
    "StepStatistics",
    "Stored",
    "UnmatchedSelector",
    "lacking",
    "plan",
    "read_definition",
    "tool_brick",
]
